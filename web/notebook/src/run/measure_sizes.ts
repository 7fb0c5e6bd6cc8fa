// Times one program at several sizes: its module and weights are loaded once, and what a call of
// each size needs before it. The first size is where results are checked, and where a program that
// was compiled for that size alone is timed beside it.
import { EngineRefusal } from "../engine/engine.ts";
import { Run } from "../engine/handle.ts";
import type { Dims } from "../engine/protocol.ts";
import { spreadOf, type RunResult, type Spread } from "./bench_result.ts";
import { callAndCheck, callOnce, layoutAt, load } from "./load.ts";
import { Runner } from "./runner.ts";
import { Tensors } from "./weights.ts";

export interface SizeTime {
  size: number;
  time: Spread;
}
export interface SizesMeasured {
  points: SizeTime[]; // as they came
  check: RunResult["check"] | null; // at the first one
  fixed: Spread | null; // of a program for the first size alone
}

const seed = 0;
const repeats = 7;

// The same passes, once the sizes are numbers.
function compileFor(run: Run, dims: Dims): Promise<Run> {
  const bindings = Object.entries(dims).map(([symbol, size]) => `${symbol}=${size}`);
  const passes = `specialize_shapes{bindings=${bindings.join(",")}},${run.info.passes}`;
  return Run.compile(run.model, passes, run.info.target, run.info.force);
}

// By turns, as a bench does.
async function timed(runners: [Runner, ...Runner[]]): Promise<[Spread, ...Spread[]]> {
  const counts: number[] = [];
  for (const runner of runners) counts.push((await runner.warm()).count);
  const samples = runners.map(() => [] as number[]);
  for (let i = 0; i < repeats; ++i)
    for (const [k, runner] of runners.entries())
      samples[k]?.push(await runner.block(counts[k] ?? 1));
  const [first = [], ...others] = samples;
  return [spreadOf(first), ...others.map(spreadOf)];
}

// Times the first size alone beside the program that is loaded in `runner`.
async function besideFixed(
  run: Run,
  runner: Runner,
  other: Runner,
  tensors: Tensors,
  dims: Dims,
): Promise<[Spread, Spread | null]> {
  const fixed = await compileFor(run, dims);
  try {
    const program = await fixed.ask("program", {});
    const layout = await load(fixed, other, tensors);
    await callOnce(other, { program, tensors, layout, dims });
    const [open, alone] = await timed([runner, other]);
    return [open, alone ?? null];
  } catch (error) {
    // A pipeline that gives other sizes their values further on has no such program.
    if (!(error instanceof EngineRefusal)) throw error;
    return [(await timed([runner]))[0], null];
  } finally {
    await fixed.close().catch(() => undefined);
  }
}

// `dims` are of all symbols of the program; `sizes`, of which the first is judged, are of `along`.
export async function measureSizes(
  run: Run,
  dims: Dims,
  along: string,
  sizes: number[],
  report: (measured: SizesMeasured) => void,
  signal: AbortSignal,
): Promise<void> {
  const [runner, other] = [new Runner(), new Runner()];
  const end = () => [runner, other].forEach((one) => one.end());
  signal.addEventListener("abort", end);
  try {
    const tensors = await Tensors.of(run.model, seed);
    const program = await run.ask("program", { dims });
    await load(run, runner, tensors, dims);
    let measured: SizesMeasured = { points: [], check: null, fixed: null };
    for (const [i, size] of sizes.entries()) {
      signal.throwIfAborted();
      const at = { ...dims, [along]: size };
      const layout = await layoutAt(run, at);
      await runner.grow(layout.pages);
      const call = { program, tensors, layout, dims: at };
      if (i === 0) {
        const check = await callAndCheck(run, runner, call);
        const [time, fixed] = await besideFixed(run, runner, other, tensors, at);
        measured = { points: [{ size, time }], check, fixed };
        other.end();
      } else {
        await callOnce(runner, call);
        const [time] = await timed([runner]);
        measured = { ...measured, points: [...measured.points, { size, time }] };
      }
      report(measured);
    }
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}
