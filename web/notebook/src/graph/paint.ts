// Paints what the camera sees. Far away, boxes lose their texts and then lines their bends: what
// could not be read is not drawn, which keeps thousands of nodes fluid.
import type { Box, GraphNode } from "../engine/protocol.ts";
import { plural } from "../view/quantities.ts";
import { seen, type Camera } from "./camera.ts";
import { families, type Family } from "./families.ts";
import type { Scene, SceneCluster, SceneNode } from "./scene.ts";

export interface Palette {
  ground: string;
  panel: string;
  ink: string;
  soft: string;
  line: string;
  wire: string;
  accent: string;
  accentSoft: string;
  added: string;
  addedSoft: string;
  family: Record<Family, string>;
  mono: string;
}

export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  const value = (name: string) => style.getPropertyValue(name).trim();
  return {
    ground: value("--bg"),
    panel: value("--panel"),
    ink: value("--ink"),
    soft: value("--soft"),
    line: value("--line"),
    wire: value("--wire"),
    accent: value("--accent"),
    accentSoft: value("--accent-soft"),
    added: value("--add"),
    addedSoft: value("--add-soft"),
    family: {
      contract: value("--contract"),
      point: value("--point"),
      reduce: value("--reduce"),
      view: value("--view"),
      data: value("--data"),
      group: value("--group"),
    },
    mono: value("--mono"),
  };
}

export interface View {
  width: number; // in CSS pixels
  height: number;
  pixels: number; // device pixels for each
  chosen: number | null; // of scene.nodes
  query: string; // nodes that contain it stand out
}

const textScale = 0.42; // below it no text is drawn
const detailScale = 0.75; // and here the type below the op

function roundRect(g: CanvasRenderingContext2D, [x, y, w, h]: Box, radius: number): void {
  g.beginPath();
  g.roundRect(x, y, w, h, radius);
}

function fittedText(g: CanvasRenderingContext2D, text: string, width: number): string {
  if (g.measureText(text).width <= width) return text;
  const keep = Math.max(1, Math.floor((width / g.measureText(text).width) * text.length) - 1);
  return `${text.slice(0, keep)}…`;
}

function paintCluster(
  g: CanvasRenderingContext2D,
  cluster: SceneCluster,
  p: Palette,
  scale: number,
  found: number, // of the nodes that it hides
) {
  const [x, y, width] = cluster.box;
  roundRect(g, cluster.box, 8);
  g.fillStyle = cluster.isFolded || cluster.depth % 2 === 0 ? p.panel : p.ground;
  g.fill();
  g.lineWidth = found > 0 ? 2.5 : cluster.hasMarks ? 2 : 1;
  g.strokeStyle = found > 0 ? p.accent : cluster.hasMarks ? p.added : p.line;
  if (cluster.isFolded) g.setLineDash([4, 3]);
  g.stroke();
  g.setLineDash([]);
  if (scale < textScale) return;
  g.fillStyle = p.soft;
  g.textAlign = "left";
  g.font = `11px ${p.mono}`;
  const sign = cluster.isFolded ? "▸" : "▾";
  g.fillText(fittedText(g, `${sign} ${cluster.label}`, width - 16), x + 8, y + 14);
  if (!cluster.isFolded) return;
  const marks = cluster.hasMarks ? "~ " : "";
  const count = found > 0 ? `${found} found` : `${marks}${plural(cluster.nodes, "node")}`;
  g.fillText(fittedText(g, count, width - 16), x + 8, y + 30);
}

function paintNode(
  g: CanvasRenderingContext2D,
  node: SceneNode,
  p: Palette,
  scale: number,
  state: { isChosen: boolean; isFound: boolean },
): void {
  const [x, y, width, height] = node.box;
  const colour = p.family[node.family];
  if (scale < textScale / 2) {
    const least = 1 / scale; // a pixel: no node vanishes
    g.fillStyle = node.mark ? p.added : colour;
    g.fillRect(x, y, Math.max(width, least), Math.max(height, least));
  } else {
    roundRect(g, node.box, 6);
    g.fillStyle = state.isChosen ? p.accentSoft : node.mark ? p.addedSoft : p.panel;
    g.fill();
    g.lineWidth = node.mark ? 2.5 : 1.25;
    g.strokeStyle = node.mark ? p.added : colour;
    if (node.mark === "changed") g.setLineDash([6, 3]);
    g.stroke();
    g.setLineDash([]);
  }
  if (state.isChosen || state.isFound) {
    roundRect(g, [x - 4, y - 4, width + 8, height + 8], 9);
    g.lineWidth = state.isChosen ? 2.5 : 1.5;
    g.strokeStyle = p.accent;
    g.stroke();
  }
  if (scale < textScale) return;
  g.textAlign = "center";
  g.font = `12px ${p.mono}`;
  g.fillStyle = colour;
  const hasType = scale >= detailScale && node.type !== "";
  const text = fittedText(g, `${families[node.family].sign} ${node.label}`, width - 12);
  const middle = x + width / 2;
  const baseline = y + (hasType ? height / 2 - 3 : height / 2 + 4);
  const sign = text.slice(0, 1);
  const half = g.measureText(text).width / 2;
  g.textAlign = "left";
  g.fillText(sign, middle - half, baseline);
  g.fillStyle = p.ink;
  g.fillText(text.slice(1), middle - half + g.measureText(sign).width, baseline);
  if (node.mark) {
    g.fillStyle = p.added;
    g.fillText(node.mark === "added" ? "+" : "~", x + 5, y + 13);
  }
  if (!hasType) return;
  g.textAlign = "center";
  g.font = `10px ${p.mono}`;
  g.fillStyle = p.soft;
  g.fillText(fittedText(g, node.type, width - 10), middle, y + height / 2 + 12);
}

function paintRoutes(
  g: CanvasRenderingContext2D,
  scene: Scene,
  visible: Set<number>,
  p: Palette,
  scale: number,
  chosen: SceneNode | undefined,
): void {
  const stroke = (isLit: boolean) => {
    g.beginPath();
    for (const i of visible) {
      const route = scene.routes[i];
      if (!route) continue;
      const touches = chosen && (route.from === chosen.index || route.to === chosen.index);
      if (Boolean(touches) !== isLit) continue;
      const { points } = route;
      g.moveTo(points[0] ?? 0, points[1] ?? 0);
      const step = scale < textScale / 2 ? Math.max(2, points.length - 2) : 2;
      for (let k = step; k + 1 < points.length; k += step)
        g.lineTo(points[k] ?? 0, points[k + 1] ?? 0);
    }
    g.strokeStyle = isLit ? p.accent : p.wire;
    g.lineWidth = isLit ? 2 : Math.max(1, 0.6 / scale);
    g.stroke();
  };
  stroke(false);
  if (chosen) stroke(true);
}

export function paint(
  g: CanvasRenderingContext2D,
  scene: Scene,
  camera: Camera,
  view: View,
  p: Palette,
): void {
  const { scale } = camera;
  g.setTransform(view.pixels, 0, 0, view.pixels, 0, 0);
  g.fillStyle = p.ground;
  g.fillRect(0, 0, view.width, view.height);
  g.setTransform(
    view.pixels * scale,
    0,
    0,
    view.pixels * scale,
    -camera.x * scale * view.pixels,
    -camera.y * scale * view.pixels,
  );
  const window = seen(camera, view.width, view.height);
  const [left, top, width, height] = window;
  const query = view.query.toLowerCase();
  const isFound = (node: GraphNode) => query !== "" && matches(node, query);
  for (const cluster of scene.clusters) {
    const [x, y, w, h] = cluster.box;
    if (x > left + width || y > top + height || x + w < left || y + h < top) continue;
    paintCluster(g, cluster, p, scale, cluster.hidden.filter(isFound).length);
  }
  const visible = scene.grid.within(window);
  const chosen = view.chosen === null ? undefined : scene.nodes[view.chosen];
  paintRoutes(g, scene, visible.routes, p, scale, chosen);
  for (const i of visible.nodes) {
    const node = scene.nodes[i];
    if (!node) continue;
    const state = { isChosen: i === view.chosen, isFound: isFound(node.node) };
    paintNode(g, node, p, scale, state);
  }
}

// `query` in lower case.
export function matches({ name = "", op, module = "" }: GraphNode, query: string): boolean {
  return `${name} ${op} ${module}`.toLowerCase().includes(query);
}
