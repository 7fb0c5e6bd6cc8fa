// A bundle in the order in which a call meets it: of each frame the graphs, and what ended them.
import type {
  BundleInfo,
  CapturedCompile,
  CapturedFrame,
  GraphBreak,
} from "../engine/bundle_info.ts";
import { plural } from "./quantities.ts";

// Graphs of one frame that end alike. Which of `breaks` it is, or that they return or failed.
export interface BundleRow {
  frame: CapturedFrame | null;
  compiles: CapturedCompile[];
  end: { broke: GraphBreak; number: number } | null; // the number counts from 1
}

export function rowsOf(info: BundleInfo): BundleRow[] {
  const frames = new Map(info.frames.map((frame) => [frame.frame, frame]));
  const rows = new Map<string, BundleRow>();
  for (const compile of info.compiles) {
    const broke = compile.break === undefined ? undefined : info.breaks[compile.break];
    const key = `${compile.frame} ${compile.break ?? ""} ${compile.failure ?? ""}`;
    const row = rows.get(key) ?? {
      frame: frames.get(compile.frame) ?? null,
      compiles: [],
      end: broke ? { broke, number: (compile.break ?? 0) + 1 } : null,
    };
    row.compiles.push(compile);
    rows.set(key, row);
  }
  return [...rows.values()];
}

export function bundleSummary(info: BundleInfo): string {
  const graphs = info.compiles.filter(({ graph }) => graph).length;
  const causes = info.recompiles.length;
  const of = info.num_recompiles > causes ? ` of ${plural(causes, "cause")}` : "";
  return [
    plural(graphs, "graph"),
    plural(info.breaks.length, "graph break"),
    plural(info.num_recompiles, "recompile") + of,
  ].join(", ");
}

export const placeOf = ({ file, line }: { file: string; line: number }) =>
  file ? `${file}:${line}` : "an unknown line";

export function frameText(frame: CapturedFrame | null): string {
  if (!frame) return "an unknown frame";
  return `${frame.function}${frame.is_resumed ? ", resumed" : ""}`;
}

// What a graph takes: its weights are many and all alike.
export function inputsText(inputs: { source: string; is_state: boolean }[]): string {
  const given = inputs.filter(({ is_state }) => !is_state).map(({ source }) => source);
  const state = inputs.length - given.length;
  const words = given.length > 0 ? [listed(given)] : [];
  return [...words, ...(state > 0 ? [plural(state, "weight")] : [])].join(" and ");
}

// Lines without the indentation that all of them have.
export function dedented<T extends { code: string }>(lines: readonly T[]): T[] {
  const widths = lines.filter(({ code }) => code.trim()).map(({ code }) => code.search(/\S/));
  const width = Math.min(...widths);
  return lines.map((line) => ({ ...line, code: line.code.slice(width) }));
}

// What a list of compilations reads like: "0_1, 1_1, and 3 more".
export function listed(ids: readonly string[], most = 8): string {
  const more = ids.length - most;
  return ids.slice(0, most).join(", ") + (more > 0 ? `, and ${more} more` : "");
}
