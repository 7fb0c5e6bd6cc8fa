// Runs a package in Node as its users do: beside its three files, nothing of Lathe.
//
//   node run_model.mjs LOADER RUNS SIZES < inputs > outputs
//
// SIZES is JSON, {"s0": 4}. Inputs and outputs follow one another as they lie in memory; outputs
// are those of the last run. Ends with 1 and the loader's words where it refuses.
import { readFileSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const arrays = {
  f32: Float32Array, f64: Float64Array, i64: BigInt64Array, i32: Int32Array, bool: Uint8Array,
};

const [loader, runs, sizes] = process.argv.slice(2);
try {
  const { load } = await import(pathToFileURL(loader).href);
  const model = await load();
  if (model.symbols.length > 0) model.bind(JSON.parse(sizes));
  const given = readFileSync(0);
  let at = 0;
  const inputs = model.inputs.map(({ dtype, shape }) => {
    const bytes = shape.reduce((n, extent) => n * extent, 1) * arrays[dtype].BYTES_PER_ELEMENT;
    const own = new Uint8Array(given.subarray(at, (at += bytes)));
    return new arrays[dtype](own.buffer);
  });
  let outputs = [];
  for (let run = Number(runs); run > 0; --run) outputs = model.run(inputs);
  for (const output of outputs) {
    const bytes = new Uint8Array(output.buffer);
    for (let i = 0; i < bytes.length;) i += writeSync(1, bytes, i);
  }
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
