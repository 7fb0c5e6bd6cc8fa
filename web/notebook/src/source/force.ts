// The decisions in a passes cell's text: added, replaced and taken out where they stand.
import type { PassesCode } from "./cell_code.ts";
import type { Span } from "./parse.ts";
import { quote } from "./parse.ts";

// The region that a line decides the kernel of.
const regionOf = (line: string) => /^\s*(?:kernel|tile)\s+%?(\S+)\s*=/.exec(line)?.[1] ?? null;

const cut = (source: string, spans: Span[]) =>
  spans.reduceRight((text, { from, to }) => text.slice(0, from) + text.slice(to), source);

export const isDecided = (code: PassesCode, region: string) =>
  code.force.some(({ value }) => regionOf(value) === region);

// With these lines in place of those that decided the same region.
export function decided(source: string, code: PassesCode, region: string, lines: string[]): string {
  const added = lines.map((line) => `, force=${quote(line)}`).join("");
  const old = code.force.filter(({ value }) => regionOf(value) === region);
  return cut(source.slice(0, code.end) + added + source.slice(code.end), old);
}

export function undecided(source: string, code: PassesCode, index: number): string {
  return cut(source, code.force.slice(index, index + 1));
}
