// Numbers as a person reads them, always with a unit.

const thin = (text: string) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

function scaled(value: number, units: string[], step: number): string {
  let i = 0;
  let size = value;
  while (size >= step && i + 1 < units.length) {
    size /= step;
    ++i;
  }
  const digits = size >= 100 || Number.isInteger(size) ? 0 : size >= 10 ? 1 : 2;
  return `${size.toFixed(digits)} ${units[i]}`.trim();
}

export const count = (value: number) => thin(String(value));
export const bytes = (value: number) => scaled(value, ["B", "kB", "MB", "GB"], 1000);
export const big = (value: number) => scaled(value, ["", "k", "M", "G"], 1000);

export function milliseconds(value: number): string {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  if (value >= 10) return `${value.toFixed(1)} ms`;
  if (value >= 0.1) return `${value.toFixed(2)} ms`;
  return `${(value * 1000).toFixed(value >= 0.01 ? 0 : 1)} µs`;
}

export const percent = (share: number) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

export const moment = (date: Date) =>
  date.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

// In the order in which their marks tell: most call themselves Chrome too.
const browsers = [
  ["Edg", "Edge"],
  ["OPR", "Opera"],
  ["Firefox", "Firefox"],
  ["Chrome", "Chrome"],
  ["Version", "Safari"],
] as const;

// "Chrome 156", from what a browser calls itself.
export function browserName(agent: string): string {
  for (const [mark, name] of browsers) {
    const version = new RegExp(`${mark}/(\\d{1,6})`).exec(agent)?.[1];
    if (version) return `${name} ${version}`;
  }
  return "an unknown browser";
}

export function plural(value: number, word: string): string {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}
