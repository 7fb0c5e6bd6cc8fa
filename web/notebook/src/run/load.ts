// A program in the memory of a runner: its module and weights are put there once, the inputs of a
// call, and the sizes of one over symbols, before the call; then its results are checked against
// the interpreter.
import { engine, EngineRefusal } from "../engine/engine.ts";
import type { Run } from "../engine/handle.ts";
import type { Dims, ModuleLayout, PlacedTensor, ProgramInfo } from "../engine/protocol.ts";
import { joined } from "../engine/unpack.ts";
import type { RunResult } from "./bench_result.ts";
import type { Runner } from "./runner.ts";
import type { Tensors } from "./weights.ts";

export const page = 65536; // bytes

async function emit(run: Run, what: "wasm" | "layout", dims?: Dims) {
  const ask = { run: await run.handle.id(), what, ...(dims && { dims }) };
  const { json, bytes } = await engine.requestBytes("emit", ask);
  if (!json.layout) throw new Error("the engine wrote a module without its layout");
  return { layout: json.layout, module: bytes };
}

// Where calls of these sizes have their inputs and outputs; the module is that of any size.
export async function layoutAt(run: Run, dims: Dims): Promise<ModuleLayout> {
  return (await emit(run, "layout", dims)).layout;
}

export async function load(
  run: Run,
  runner: Runner,
  tensors: Tensors,
  dims?: Dims,
): Promise<ModuleLayout> {
  const { layout, module } = await emit(run, "wasm", dims);
  try {
    await runner.load(module, layout.pages);
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
  return layout;
}

export interface Call {
  program: ProgramInfo;
  tensors: Tensors;
  layout: ModuleLayout;
  dims?: Dims; // that the layout is of
}

// Afterwards the program can be called again, and timed. Returns the values of the model's own
// inputs.
export async function callOnce(runner: Runner, call: Call): Promise<Uint8Array[]> {
  const { program, tensors, layout, dims } = call;
  if (layout.table) {
    const words = new Int32Array(layout.table.words);
    await runner.write(layout.table.address, new Uint8Array(words.buffer));
  }
  const inputs: Uint8Array[] = [];
  for (const [i, { address }] of layout.inputs.entries()) {
    // Behind the model's inputs stand the buffers that it changes, with their first values.
    const isInput = i < tensors.numInputs;
    const buffer = program.buffers[program.inputs[i] ?? -1];
    const bytes = isInput
      ? await tensors.input(i, dims)
      : await tensors.weight(buffer?.weight || buffer?.name || "");
    if (isInput) inputs.push(bytes);
    await runner.write(address, bytes);
  }
  try {
    await runner.call("run");
  } catch (error) {
    throw (await failedAssertion(runner, layout)) ?? error;
  }
  return inputs;
}

// What a model asserts of its data and does not hold, behind a call that trapped.
async function failedAssertion(runner: Runner, layout: ModuleLayout): Promise<Error | null> {
  for (const { asserts } of layout.steps) {
    if (!asserts) continue;
    const { buffer, byteOffset } = await runner.read(asserts.address, 8);
    const key = new DataView(buffer, byteOffset).getBigInt64(0, true);
    const number = BigInt.asIntN(63, key) + BigInt(asserts.low);
    if (number >= asserts.low && number < asserts.high) continue;
    const said = asserts.message.replace("{index}", String(number));
    return new Error(said.replace("{size}", String(asserts.high)));
  }
  return null;
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
  { tensors, dims }: Call,
  inputs: Uint8Array[],
  outputs: Uint8Array[],
): Promise<RunResult["check"]> {
  const parts: Uint8Array[] = [];
  try {
    if (!tensors.areSeeded)
      for (const name of tensors.weights.keys()) parts.push(await tensors.weight(name));
    parts.push(...inputs, ...outputs);
    const how = { ...(tensors.areSeeded && { weights: tensors.seedText }), ...(dims && { dims }) };
    return await run.ask("check", { ...how, results: true }, joined(parts));
  } catch (error) {
    return { skipped: reasonOf(error) };
  }
}

export async function callAndCheck(
  run: Run,
  runner: Runner,
  call: Call,
): Promise<RunResult["check"]> {
  const inputs = await callOnce(runner, call);
  return check(run, call, inputs, await outputsOf(runner, call.layout));
}
