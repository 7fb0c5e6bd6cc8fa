// A cell: what a person typed, and what came of it.
import { signal, type Signal } from "@preact/signals";
import type { OpenModel, Run } from "../engine/handle.ts";
import type { BundleInfo } from "../engine/bundle_info.ts";
import type { EngineError } from "../engine/protocol.ts";
import type { BenchResult } from "../run/bench_result.ts";
import type { SourceError } from "../source/parse.ts";

export type CodeKind = "model" | "passes" | "bench" | "bundle";
// A foreign cell came with an .ipynb from elsewhere; it is shown, kept and never run.
export type Kind = CodeKind | "markdown" | "foreign";

export interface CellFailure {
  message: string; // what to show when there is nothing better
  engine?: EngineError;
  source?: SourceError;
  hint?: string;
}

export type CellValue =
  // `graph` is a run of no passes: the graph as it was imported, to be drawn.
  | { kind: "model"; name: string; model: OpenModel; graph: Run }
  | { kind: "passes"; name: string; run: Run }
  | { kind: "bundle"; file: string; info: BundleInfo }
  | Measured;
export interface Measured {
  kind: "bench";
  result: BenchResult;
}

export type Outcome =
  | { state: "idle" }
  // `source`: the text that `before` came from.
  | { state: "waiting"; before: CellValue | null; source: string }
  | { state: "running"; before: CellValue | null; since: number }
  | { state: "done"; value: CellValue; milliseconds: number; source: string }
  // Figures that came with the notebook: from another visit, or another person's machine.
  | { state: "kept"; value: Measured; source: string }
  | { state: "failed"; failure: CellFailure; source: string }
  // Not run, because the cell that makes `name` failed.
  | { state: "blocked"; name: string; source: string };

export interface Cell {
  id: string;
  kind: Kind;
  source: Signal<string>;
  folded: Signal<boolean>;
  outcome: Signal<Outcome>;
  // Which step of a passes cell, or kernel of a bench, is looked at; null: the one that fits best.
  selected: Signal<number | null>;
  foreign?: unknown; // the whole cell as it stood in its file
}

// Ids as nbformat 4.5 wants them: 1 to 64 letters, digits, - and _.
export function newId(): string {
  return crypto.randomUUID().slice(0, 8);
}

export function makeCell(kind: Kind, source: string, id = newId()): Cell {
  return {
    id,
    kind,
    source: signal(source),
    folded: signal(false),
    outcome: signal<Outcome>({ state: "idle" }),
    selected: signal<number | null>(null),
  };
}

export function valueOf(cell: Cell): CellValue | null {
  const { value } = cell.outcome;
  return value.state === "done" || value.state === "kept" ? value.value : null;
}

// What to show: the value, or the last one while the next is made.
export function shownValue(cell: Cell): CellValue | null {
  const { value } = cell.outcome;
  if (value.state === "waiting" || value.state === "running") return value.before;
  return valueOf(cell);
}

// Whether what is shown came from another text than the one that stands there.
export function isEdited(cell: Cell): boolean {
  const { value } = cell.outcome;
  if (value.state !== "done" && value.state !== "kept" && value.state !== "failed") return false;
  return value.source !== cell.source.value;
}

export const isCode = (cell: Cell) => cell.kind !== "markdown" && cell.kind !== "foreign";
