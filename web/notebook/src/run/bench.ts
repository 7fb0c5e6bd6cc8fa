// A bench: each program is emitted, put into a memory of its own, run, and its results are checked
// against the interpreter; then all are warmed up and timed by turns.
import { engine, EngineRefusal } from "../engine/engine.ts";
import type { Run } from "../engine/handle.ts";
import type { LaunchInfo, ModuleLayout, PlacedTensor, ProgramInfo } from "../engine/protocol.ts";
import type { BenchCode } from "../source/cell_code.ts";
import { identityOf } from "../engine/handle.ts";
import { spreadOf, type BenchResult, type RunResult, type StepResult } from "./bench_result.ts";
import { Runner } from "./runner.ts";
import { Tensors } from "./weights.ts";
import { joined } from "../engine/unpack.ts";

export interface Subject {
  name: string;
  run: Run;
}

const page = 65536;

async function emit(run: Run): Promise<{ layout: ModuleLayout; module: Uint8Array }> {
  const id = await run.handle.id();
  const { json, bytes } = await engine.requestBytes("emit", { run: id, what: "wasm" });
  if (!json.layout) throw new Error("the engine wrote a module without its layout");
  return { layout: json.layout, module: bytes };
}

// Returns the values of the model's own inputs.
async function load(
  runner: Runner,
  program: ProgramInfo,
  tensors: Tensors,
  layout: ModuleLayout,
  code: Uint8Array,
): Promise<Uint8Array[]> {
  try {
    await runner.load(code, layout.pages);
  } catch (error) {
    const size = ((layout.pages * page) / 1e9).toFixed(2);
    throw new Error(`the browser refused the program's ${size} GB: ${(error as Error).message}`);
  }
  const put = async (ports: PlacedTensor[]) => {
    for (const { name, address } of ports) await runner.write(address, await tensors.weight(name));
  };
  await put(layout.weights);
  for (const init of layout.init) {
    await put(init.weights);
    await runner.call(init.function);
  }
  const inputs: Uint8Array[] = [];
  for (const [i, { address }] of layout.inputs.entries()) {
    // Behind the model's inputs stand the buffers that it changes, with their first values.
    const isInput = i < tensors.numInputs;
    const buffer = program.buffers[program.inputs[i] ?? -1];
    const bytes = isInput
      ? await tensors.input(i)
      : await tensors.weight(buffer?.weight || buffer?.name || "");
    if (isInput) inputs.push(bytes);
    await runner.write(address, bytes);
  }
  return inputs;
}

async function outputsOf(runner: Runner, layout: ModuleLayout): Promise<Uint8Array[]> {
  const outputs: Uint8Array[] = [];
  for (const { address, bytes } of layout.outputs) outputs.push(await runner.read(address, bytes));
  return outputs;
}

// With the line of the model that it is about.
function reasonOf(error: unknown): string {
  const { message } = error as Error;
  if (!(error instanceof EngineRefusal)) return message;
  const { places = [], table = [] } = error.error;
  const place = table[places[0] ?? -1];
  return place?.file ? `${message}, in ${place.file}:${place.line ?? "?"}` : message;
}

async function check(
  run: Run,
  tensors: Tensors,
  inputs: Uint8Array[],
  outputs: Uint8Array[],
): Promise<RunResult["check"]> {
  const parts: Uint8Array[] = [];
  try {
    if (!tensors.areSeeded)
      for (const name of tensors.weights.keys()) parts.push(await tensors.weight(name));
    parts.push(...inputs, ...outputs);
    const weights = tensors.areSeeded ? { weights: tensors.seedText } : {};
    return await run.ask("check", { ...weights, results: true }, joined(parts));
  } catch (error) {
    return { skipped: reasonOf(error) };
  }
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
  const { layout, module } = await emit(run);
  const tensors = await Tensors.of(run.model, seed);
  const inputs = await load(runner, program, tensors, layout, module);
  await runner.call("run");
  const outputs = await outputsOf(runner, layout);
  const judged = await check(run, tensors, inputs, outputs);
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
