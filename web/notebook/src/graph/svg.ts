// A scene as a picture that stands by itself: for downloads and for the .ipynb, where GitHub shows
// it.
import { families, type Family } from "./families.ts";
import type { Scene } from "./scene.ts";

const colours: Record<Family, string> = {
  contract: "#3b6fb6",
  point: "#2e8b6f",
  reduce: "#b8742a",
  view: "#6f7277",
  data: "#7d5aa6",
  group: "#0b6e99",
};

const escape = (text: string) =>
  text.replace(
    /[&<>"]/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] ?? c,
  );

function cut(text: string, width: number): string {
  const most = Math.max(3, Math.floor(width / 7));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function svgOf(scene: Scene, title: string): string {
  const [width, height] = [Math.ceil(scene.width) + 16, Math.ceil(scene.height) + 16];
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 ${width} ${height}" width="${width}" ` +
      `height="${height}" font-family="monospace" font-size="12"><title>${escape(title)}</title>` +
      `<rect x="-8" y="-8" width="${width}" height="${height}" fill="#fff"/>`,
  ];
  for (const { box, label, isFolded, nodes } of scene.clusters) {
    const [x, y, w, h] = box;
    const text = isFolded ? `${label}: ${nodes} nodes` : label;
    parts.push(
      `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="8" fill="#00000006" ` +
        `stroke="#bbb"/><text x="${x + 8}" y="${y + 14}" font-size="11" fill="#63666b">` +
        `${escape(cut(text, w))}</text>`,
    );
  }
  const paths = scene.routes.map(({ points }) => {
    let path = "";
    for (let i = 0; i + 1 < points.length; i += 2)
      path += `${i === 0 ? "M" : "L"}${points[i]} ${points[i + 1]}`;
    return path;
  });
  parts.push(`<path d="${paths.join("")}" fill="none" stroke="#aaa"/>`);
  for (const { box, family, label, type, mark } of scene.nodes) {
    const [x, y, w, h] = box;
    const colour = mark ? "#1a7f4b" : colours[family];
    const text = cut(`${families[family].sign} ${label}`, w);
    parts.push(
      `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="6" fill="#fff" stroke="${colour}" ` +
        `stroke-width="${mark ? 2.5 : 1.25}"/><text x="${x + w / 2}" y="${y + h / 2 - 2}" ` +
        `text-anchor="middle">${escape(text)}</text><text x="${x + w / 2}" y="${y + h / 2 + 12}" ` +
        `text-anchor="middle" font-size="10" fill="#63666b">${escape(cut(type, w * 1.15))}</text>`,
    );
  }
  return `${parts.join("\n")}\n</svg>\n`;
}
