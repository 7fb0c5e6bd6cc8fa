// A bench: each program is emitted, put into a memory of its own, run, and its results are checked
// against the interpreter; then all are warmed up and timed by turns.
import type { Run } from "../engine/handle.ts";
import type { LaunchInfo, ProgramInfo } from "../engine/protocol.ts";
import type { BenchCode } from "../source/cell_code.ts";
import { identityOf } from "../engine/handle.ts";
import { spreadOf, type BenchResult, type RunResult, type StepResult } from "./bench_result.ts";
import { callAndCheck, load, page } from "./load.ts";
import { Runner } from "./runner.ts";
import { Tensors } from "./weights.ts";

export interface Subject {
  name: string;
  run: Run;
}

function stepResults(launches: LaunchInfo[], times: number[][]): StepResult[] {
  return launches.map(({ label, kernel, flops, bytes, region, plan, bound, ...price }, i) => {
    const samples = times[i] ?? [];
    const mean = samples.reduce((sum, one) => sum + one, 0) / Math.max(1, samples.length);
    const step: StepResult = { label, kernel: kernel ?? null, mean, flops, bytes };
    if (region !== undefined) step.region = region;
    if (plan !== undefined) step.plan = plan;
    if (price.predicted !== undefined) step.predicted = 1e3 * price.predicted;
    if (price.limit !== undefined) step.limit = 1e3 * price.limit;
    if (bound !== undefined) step.bound = bound;
    return step;
  });
}

// A program in its own memory, run once and judged.
interface Loaded {
  subject: Subject;
  runner: Runner;
  program: ProgramInfo;
  memoryBytes: number;
  weights: string;
  check: RunResult["check"];
}

async function prepare(subject: Subject, runner: Runner, seed: number): Promise<Loaded> {
  const { run } = subject;
  const program = await run.ask("program", {});
  const tensors = await Tensors.of(run.model, seed);
  const layout = await load(run, runner, tensors);
  const judged = await callAndCheck(run, runner, { program, tensors, layout });
  const weights = tensors.areSeeded ? tensors.seedText : run.model.source.name;
  return { subject, runner, program, memoryBytes: layout.pages * page, weights, check: judged };
}

const mostRounds = 1000;

async function measured(list: Loaded[], repeats: number): Promise<RunResult[]> {
  const warm = [];
  for (const { runner } of list) warm.push(await runner.warm());
  const samples = list.map(() => [] as number[]);
  // By turns, so that whatever else the machine does meets all of them alike.
  for (let i = 0; i < repeats; ++i)
    for (const [k, { runner }] of list.entries())
      samples[k]?.push(await runner.block(warm[k]?.count ?? 1));
  const results: RunResult[] = [];
  for (const [k, { subject, runner, program, memoryBytes, check: judged }] of list.entries()) {
    const rounds = Math.min(mostRounds, repeats * (warm[k]?.count ?? 1));
    const times = await runner.steps(program.steps.length, rounds);
    results.push({
      name: subject.name,
      pipeline: subject.run.info.passes,
      target: subject.run.info.target,
      force: subject.run.info.force,
      model: identityOf(subject.run.model.info),
      total: spreadOf(samples[k] ?? []),
      samples: samples[k] ?? [],
      settled: warm[k]?.settled ?? false,
      steps: stepResults(program.steps, times),
      memory_bytes: memoryBytes,
      check: judged,
    });
  }
  return results;
}

export async function bench(subjects: Subject[], code: BenchCode): Promise<BenchResult> {
  const runners = subjects.map(() => new Runner());
  try {
    const list: Loaded[] = [];
    for (const [i, subject] of subjects.entries())
      list.push(await prepare(subject, runners[i] as Runner, code.seed));
    return {
      runs: await measured(list, code.repeats),
      isa: subjects[0]?.run.info.target ?? "",
      seed: code.seed,
      ...(list[0] && { gigahertz: list[0].program.gigahertz }),
      weights: [...new Set(list.map(({ weights }) => weights))].join(" and "),
      when: new Date().toISOString(),
      agent: navigator.userAgent,
    };
  } finally {
    for (const runner of runners) runner.end();
  }
}
