// A bench: each program is emitted, put into a memory of its own, warmed up, timed, and its results
// are checked against the interpreter.
import { engine } from "../engine/engine.ts";
import type { Run } from "../engine/handle.ts";
import type { LaunchInfo, ModuleLayout, PlacedTensor } from "../engine/protocol.ts";
import type { BenchCode } from "../source/cell_code.ts";
import { spreadOf, type BenchResult, type RunResult, type StepResult } from "./bench_result.ts";
import { Runner } from "./runner.ts";
import { Tensors } from "./weights.ts";
import type { Measured } from "./worker.ts";
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

async function load(runner: Runner, tensors: Tensors, layout: ModuleLayout, code: Uint8Array) {
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
    const bytes = await tensors.input(i);
    inputs.push(bytes);
    await runner.write(address, bytes);
  }
  return inputs;
}

async function outputsOf(runner: Runner, layout: ModuleLayout): Promise<Uint8Array[]> {
  const outputs: Uint8Array[] = [];
  for (const { address, bytes } of layout.outputs) outputs.push(await runner.read(address, bytes));
  return outputs;
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
    return { skipped: (error as Error).message };
  }
}

function stepResults(launches: LaunchInfo[], measured: Measured): StepResult[] {
  return launches.map(({ label, kernel, flops, bytes }, i) => {
    const samples = measured.steps[i] ?? [];
    const time = spreadOf(samples);
    // A browser's clock is coarse: for short kernels the mean says more than the median.
    const mean = samples.reduce((sum, one) => sum + one, 0) / Math.max(1, samples.length);
    return { label, kernel: kernel ?? null, time: { ...time, median: mean }, flops, bytes };
  });
}

async function benchOne({ name, run }: Subject, code: BenchCode): Promise<RunResult> {
  const program = await run.ask("program", {});
  const { layout, module } = await emit(run);
  const tensors = await Tensors.of(run.model, code.seed);
  const runner = new Runner();
  try {
    const inputs = await load(runner, tensors, layout, module);
    await runner.call("run");
    const outputs = await outputsOf(runner, layout);
    const measured = await runner.measure(code.repeats, program.steps.length);
    return {
      name,
      pipeline: run.info.passes,
      total: spreadOf(measured.runs),
      samples: measured.runs,
      settled: measured.settled,
      steps: stepResults(program.steps, measured),
      memory_bytes: layout.pages * page,
      check: await check(run, tensors, inputs, outputs),
    };
  } finally {
    runner.end();
  }
}

export async function bench(subjects: Subject[], code: BenchCode): Promise<BenchResult> {
  const runs: RunResult[] = [];
  for (const subject of subjects) runs.push(await benchOne(subject, code));
  return {
    runs,
    isa: subjects[0]?.run.info.target ?? "",
    seed: code.seed,
    when: new Date().toISOString(),
    agent: navigator.userAgent,
  };
}
