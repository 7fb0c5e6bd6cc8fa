// Whether what a bench measured still stands above it.
import { identityOf } from "../engine/handle.ts";
import type { BenchResult, RunResult } from "../run/bench_result.ts";
import { isCode, shownValue, type Cell } from "./cell.ts";
import { cells } from "./notebook.ts";

// What the cells above a bench make of a name, while they are made again what they made last.
function runAbove(cell: Cell, name: string) {
  const above = cells.value.slice(0, cells.value.indexOf(cell)).reverse();
  for (const one of above) {
    const value = isCode(one) ? shownValue(one) : null;
    if (value?.kind === "passes" && value.name === name) return value.run;
  }
  return null;
}

function isChanged(cell: Cell, measured: RunResult): boolean {
  const run = runAbove(cell, measured.name);
  if (!run || run.info.failed || run.info.passes !== measured.pipeline) return true;
  if (measured.target !== undefined && run.info.target !== measured.target) return true;
  if (run.info.force.join("\n") !== (measured.force ?? []).join("\n")) return true;
  return measured.model !== undefined && identityOf(run.model.info) !== measured.model;
}

// The names whose cells now say something else, or nothing.
export function changedSince(cell: Cell, result: BenchResult): string[] {
  return result.runs.filter((run) => isChanged(cell, run)).map(({ name }) => name);
}
