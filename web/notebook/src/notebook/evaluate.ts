// Runs cells in order: a cell sees the names of the cells above it, and what depends on a cell runs
// again after it. One thing runs at a time.
import { signal } from "@preact/signals";
import { engine, EngineRefusal, EngineStopped } from "../engine/engine.ts";
import { OpenModel, Run } from "../engine/handle.ts";
import { bench } from "../run/bench.ts";
import { Runner } from "../run/runner.ts";
import { understand, type CellCode } from "../source/cell_code.ts";
import { nearest } from "../source/nearest.ts";
import type { Span } from "../source/parse.ts";
import {
  isCode,
  shownValue,
  valueOf,
  type Cell,
  type CellFailure,
  type CellValue,
  type Outcome,
} from "./cell.ts";
import { canBench, loadCatalogue, usualTarget } from "./catalogue.ts";
import { bundleOf, sourceOf } from "./models.ts";
import { cells, say } from "./notebook.ts";

export const isRunning = signal(false);

class Failed extends Error {
  constructor(readonly failure: CellFailure) {
    super(failure.message);
  }
}

const definedName = (cell: Cell) => {
  const understood = understand(cell.source.value);
  return understood.ok && "name" in understood.code ? understood.code.name : null;
};

// Values by name that a cell can see: the nearest above wins.
function scopeAbove(cell: Cell): Map<string, CellValue> {
  const scope = new Map<string, CellValue>();
  for (const above of cells.value) {
    if (above === cell) break;
    const value = isCode(above) ? valueOf(above) : null;
    if (value && "name" in value) scope.set(value.name, value);
  }
  return scope;
}

function find<K extends "model" | "passes">(
  cell: Cell,
  name: Span & { value: string },
  kind: K,
): Extract<CellValue, { kind: K }> {
  const scope = scopeAbove(cell);
  const value = scope.get(name.value);
  if (value?.kind === kind) return value as Extract<CellValue, { kind: K }>;
  const definer = cells.value.find((other) => isCode(other) && definedName(other) === name.value);
  const names = [...scope].filter(([, other]) => other.kind === kind).map(([word]) => word);
  const near = nearest(name.value, names);
  let message = `no ${kind} value named '${name.value}' above`;
  if (value) message = `'${name.value}' is a ${value.kind} value, expected a ${kind} value`;
  else if (definer && cells.value.indexOf(definer) < cells.value.indexOf(cell))
    message = `'${name.value}' has no value yet; run its cell above first`;
  else if (definer) message = `'${name.value}' is made further down; move this cell below it`;
  else if (near) message += `; did you mean '${near}'?`;
  throw new Failed({ message, source: { ...name, message } });
}

async function valueFrom(cell: Cell, code: CellCode): Promise<CellValue> {
  if (code.kind === "model") {
    const model = await OpenModel.open(await sourceOf(code.file, code.dims));
    return { kind: "model", name: code.name, model, graph: await Run.compile(model, "") };
  }
  if (code.kind === "passes") {
    const { model } = find(cell, code.model, "model");
    const target = code.target ?? (await usualTarget());
    const force = code.force.map(({ value }) => value);
    const run = await Run.compile(model, code.pipeline.value, target, force);
    return { kind: "passes", name: code.name, run };
  }
  if (code.kind === "bundle") {
    const info = await engine.readBundle(code.file, await bundleOf(code.file));
    return { kind: "bundle", file: code.file, info };
  }
  if (!canBench.value) throw new Error("this engine has no WebAssembly target, so nothing can run");
  const runs = code.runs.map((name) => find(cell, name, "passes"));
  return { kind: "bench", result: await bench(runs, code) };
}

function failureOf(error: unknown): CellFailure {
  if (error instanceof Failed) return error.failure;
  if (error instanceof EngineRefusal) return { message: error.message, engine: error.error };
  if (error instanceof EngineStopped) {
    const hint =
      "A fresh engine is ready, what you typed is here. Run the cell again, or change it.";
    return { message: error.message, hint };
  }
  return { message: error instanceof Error ? error.message : String(error) };
}

async function close(value: CellValue | null): Promise<void> {
  if (value?.kind === "model") {
    await value.graph.close();
    await value.model.close();
  }
  if (value?.kind === "passes") await value.run.close();
}

// The first name that a cell uses and that has no value because its own cell failed.
function failedAbove(cell: Cell): string | null {
  const above = cells.value.slice(0, cells.value.indexOf(cell));
  const scope = scopeAbove(cell);
  const hasFailed = (name: string) =>
    !scope.has(name) &&
    above.some(
      (one) =>
        isCode(one) &&
        definedName(one) === name &&
        ["failed", "blocked"].includes(one.outcome.value.state),
    );
  return usedNames(cell).find(hasFailed) ?? null;
}

async function runCell(cell: Cell): Promise<void> {
  const source = cell.source.value;
  const before = shownValue(cell);
  const understood = understand(source);
  if (!understood.ok) {
    const { error } = understood;
    const failure: CellFailure = { message: error.message, source: error };
    cell.outcome.value = { state: "failed", failure, source };
    return;
  }
  const name = failedAbove(cell);
  if (name !== null) {
    cell.outcome.value = { state: "blocked", name, source };
    await close(before).catch(() => undefined);
    return;
  }
  cell.outcome.value = { state: "running", before, since: performance.now() };
  try {
    await loadCatalogue(); // an engine that starts is no part of what a cell takes
    const start = performance.now();
    const value = await valueFrom(cell, understood.code);
    const milliseconds = performance.now() - start;
    cell.outcome.value = { state: "done", value, milliseconds, source };
  } catch (error) {
    cell.outcome.value = { state: "failed", failure: failureOf(error), source };
  }
  await close(before).catch(() => undefined); // its worker may be gone
}

// The names that a cell's text uses.
function usedNames(cell: Cell): string[] {
  const understood = understand(cell.source.value);
  if (!understood.ok) return [];
  const { code } = understood;
  if (code.kind === "passes") return [code.model.value];
  return code.kind === "bench" ? code.runs.map(({ value }) => value) : [];
}

let queue: Promise<void> = Promise.resolve();
let epoch = 0; // of the last cancelling: what was queued before it does not run

// Its last value, if it has one, was closed with the engine that a person stopped; figures stay.
function unschedule(cell: Cell): void {
  const { value: outcome } = cell.outcome;
  if (outcome.state !== "waiting") return;
  const { before, source } = outcome;
  cell.outcome.value =
    before?.kind === "bench" ? { state: "kept", value: before, source } : { state: "idle" };
}

function waiting(cell: Cell): Outcome {
  const { value: outcome } = cell.outcome;
  const source = "source" in outcome ? outcome.source : cell.source.value;
  return { state: "waiting", before: shownValue(cell), source };
}

function schedule(list: readonly Cell[]): Promise<void> {
  for (const cell of list) cell.outcome.value = waiting(cell);
  const born = epoch;
  queue = queue.then(async () => {
    isRunning.value = true;
    for (const cell of list) {
      if (!cells.value.includes(cell)) continue;
      if (born === epoch) await runCell(cell);
      else unschedule(cell);
    }
    isRunning.value = false;
    const failed = list.filter((cell) => cell.outcome.value.state === "failed").length;
    say(failed ? `${failed} of ${list.length} cells failed` : `${list.length} cells ran`);
  });
  return queue;
}

// Does something that is no cell's when its turn comes, so that nothing else takes the machine's
// time meanwhile.
export function inTurn(work: () => Promise<void>): Promise<void> {
  const born = epoch;
  const done = queue.then(async () => {
    if (born !== epoch) throw new EngineStopped("cancelled", "waiting", "stopped by you");
    isRunning.value = true;
    try {
      await work();
    } finally {
      isRunning.value = false;
    }
  });
  queue = done.catch(() => undefined);
  return done;
}

// The cell and, below it, what depends on it. A bench takes seconds, so it runs only when asked to.
export function run(cell: Cell): Promise<void> {
  if (!isCode(cell)) return Promise.resolve();
  const list = [cell];
  const changed = new Set([definedName(cell)]);
  const value = valueOf(cell);
  if (value && "name" in value) changed.add(value.name); // the name may be new
  for (const below of cells.value.slice(cells.value.indexOf(cell) + 1)) {
    if (!isCode(below) || below.kind === "bench") continue;
    if (!usedNames(below).some((name) => changed.has(name))) continue;
    list.push(below);
    changed.add(definedName(below));
  }
  return schedule(list);
}

export function runAll(options: { bench: boolean } = { bench: true }): Promise<void> {
  return schedule(
    cells.value.filter((cell) => isCode(cell) && (options.bench || cell.kind !== "bench")),
  );
}

export function cancel(): void {
  ++epoch;
  Runner.cancel();
  engine.cancel();
}
