// A bench's figures as they stand in a notebook. Anyone may have written that file: what is not of
// a bench's shape, or more than a bench would write, is not taken at all.
import { bounds, type Bound } from "../engine/protocol.ts";
import type { BenchResult, RunResult, Spread, StepResult } from "../run/bench_result.ts";

export const benchType = "application/vnd.lathe.bench+json";

const mostRuns = 64;
const mostSteps = 10_000; // of one run
const mostSamples = 10_000; // a bench repeats no more
const mostLines = 10_000; // of decisions
const mostLetters = 10_000; // of one text

class Misshapen extends Error {}

function fields(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Misshapen("expected an object");
  return value as Record<string, unknown>;
}

function list<T>(value: unknown, most: number, read: (one: unknown) => T): T[] {
  if (!Array.isArray(value) || value.length > most)
    throw new Misshapen(`expected a list of at most ${most}`);
  return value.map(read);
}

function text(value: unknown): string {
  if (typeof value !== "string" || value.length > mostLetters)
    throw new Misshapen(`expected a text of at most ${mostLetters} letters`);
  return value;
}

function figure(value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
    throw new Misshapen("expected a number from 0");
  return value;
}

function whole(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new Misshapen("expected a whole number");
  return figure(value);
}

function flag(value: unknown): boolean {
  if (typeof value !== "boolean") throw new Misshapen("expected true or false");
  return value;
}

function spread(value: unknown): Spread {
  const { median, low, high } = fields(value);
  return { median: figure(median), low: figure(low), high: figure(high) };
}

function bound(value: unknown): Bound {
  const word = bounds.find((one) => one === value);
  if (!word) throw new Misshapen(`expected one of ${bounds.join(", ")}`);
  return word;
}

// Nothing where older pages wrote nothing.
function optional<K extends string, T>(key: K, value: unknown, read: (one: unknown) => T) {
  return (value === undefined ? {} : { [key]: read(value) }) as Partial<Record<K, T>>;
}

function step(value: unknown): StepResult {
  const { label, kernel, mean, time, flops, bytes, ...rest } = fields(value);
  return {
    label: text(label),
    kernel: kernel === null ? null : whole(kernel),
    // Older notebooks keep it among percentiles, as their median.
    mean: mean === undefined ? spread(time).median : figure(mean),
    flops: figure(flops),
    bytes: figure(bytes),
    ...optional("region", rest["region"], text),
    ...optional("plan", rest["plan"], text),
    ...optional("predicted", rest["predicted"], figure),
    ...optional("limit", rest["limit"], figure),
    ...optional("bound", rest["bound"], bound),
  };
}

function verdict(value: unknown): RunResult["check"] {
  const { skipped, passed, max_abs_error: error, why } = fields(value);
  if (skipped !== undefined) return { skipped: text(skipped) };
  const max_abs_error = error === null ? null : figure(error);
  return { passed: flag(passed), max_abs_error, ...optional("why", why, text) };
}

function run(value: unknown): RunResult {
  const { name, pipeline, model, total, samples, settled, steps, ...rest } = fields(value);
  const { memory_bytes, check, target, force } = rest;
  return {
    name: text(name),
    pipeline: text(pipeline),
    ...optional("model", model, text),
    ...optional("target", target, text),
    ...optional("force", force, (lines) => list(lines, mostLines, text)),
    total: spread(total),
    samples: list(samples, mostSamples, figure),
    settled: flag(settled),
    steps: list(steps, mostSteps, step),
    memory_bytes: figure(memory_bytes),
    check: verdict(check),
  };
}

function moment(value: unknown): string {
  const time = Date.parse(text(value));
  if (Number.isNaN(time)) throw new Misshapen("expected a date");
  return new Date(time).toISOString();
}

function result(value: unknown): BenchResult {
  const { runs, isa, seed, gigahertz, weights, when, agent } = fields(value);
  const read = list(runs, mostRuns, run);
  if (read.length === 0) throw new Misshapen("expected a run");
  return {
    runs: read,
    isa: text(isa),
    seed: whole(seed),
    ...optional("gigahertz", gigahertz, figure),
    ...optional("weights", weights, text),
    when: moment(when),
    agent: text(agent),
  };
}

// From the outputs of a cell; null when there are none of a bench.
export function readBench(outputs: unknown): BenchResult | null {
  if (!Array.isArray(outputs)) return null;
  for (const output of outputs as unknown[]) {
    try {
      const written = fields(fields(output)["data"])[benchType];
      if (written !== undefined) return result(written);
    } catch (error) {
      if (!(error instanceof Misshapen)) throw error;
    }
  }
  return null;
}
