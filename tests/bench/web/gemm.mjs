// What share of the machine's 128-bit multiply-add peak the matrix products reach in Chromium:
//
//     node tests/bench/web/gemm.mjs [--rounds 7] [--json OUT]
//
// after `./lathe web` has built the page. The peak is measured in the same page, in turns with the
// products: a loop of 24 independent multiply-adds on registers. A product is what the compiler
// emits for x @ w with w a weight (packed beforehand), as the page would run it. Shares are of
// medians of neighbouring samples; each round is a fresh browser process.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { launch, repository } from "../../../web/notebook/test/browser.mjs";
import { median, served } from "./served.mjs";

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "7" }, json: { type: "string" } },
});
const program = join(repository, "bazel-bin/frontend/cli/lathe");
const sizes = [
  [480, 480, 480],
  [120, 768, 960],
  [128, 768, 768],
  [128, 768, 3072],
  [128, 3072, 768],
  [1024, 1024, 1024],
];

const text = ([m, k, n]) => `func @main(%x: f32[${m}, ${k}]) -> f32[${m}, ${n}] {
  %w = constant() {name = "w", dtype = f32, shape = [${k}, ${n}]}
  %0 = matmul(%x, %w)
  return %0
}
`;

// The module and its layout, and the number of operations of a run.
function emitted(folder, size) {
  const name = size.join("x");
  const model = join(folder, `${name}.lathe`);
  writeFileSync(model, text(size));
  const emit = (what) => {
    const out = join(folder, `${name}.${what}`);
    const args = ["compile", "--model", model, "--weights", "random:0", "--target", "wasm"];
    execFileSync(program, [...args, "--emit", what, "-o", out], {
      cwd: repository,
      env: { ...process.env, LATHE_ROOT: repository },
    });
    return readFileSync(out);
  };
  return {
    name,
    size,
    flops: 2 * size[0] * size[1] * size[2],
    module: [...emit("wasm")],
    layout: JSON.parse(emit("layout")),
  };
}

// Runs in the browser: GFLOP/s of the peak and of each product, in turns.
async function measure(products) {
  const uleb = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...uleb(n >>> 7)]);
  const section = (id, body) => [id, ...uleb(body.length), ...body];
  // run(n: i32): n rounds of 24 multiply-adds into 12 accumulators, which memory feeds and keeps.
  const chains = 12;
  const constant = (n) => [0x41, (n & 127) | 128, n >> 7]; // i32.const below 8192
  const v128 = (at) => [...constant(at), 0xfd, 0, 4, 0]; // v128.load
  const simd = (code) => [0xfd, ...uleb(code)];
  const madd = (k) => [0x20, 1, 0x20, 2, 0x20, 3 + k, ...simd(0x105), 0x21, 3 + k];
  const numbers = [...Array(chains).keys()];
  const code = [
    ...[1, 2 + chains, 0x7b], // locals: 14 v128 after the parameter
    ...[...v128(0), 0x21, 1, ...v128(16), 0x21, 2],
    ...numbers.flatMap((k) => [...v128(16), 0x21, 3 + k]),
    ...[0x03, 0x40], // loop
    ...numbers.flatMap(madd),
    ...numbers.flatMap(madd),
    ...[0x20, 0, ...constant(1), 0x6b, 0x22, 0, 0x0d, 0, 0x0b], // br_if (n -= 1)
    ...numbers.flatMap((k) => [...constant(32 + 16 * k), 0x20, 3 + k, 0xfd, 11, 4, 0]),
    0x0b,
  ];
  const peakModule = new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 1, 0x7f, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, 1]),
    ...section(7, [1, 3, ...new TextEncoder().encode("run"), 0, 0]),
    ...section(10, [1, ...uleb(code.length), ...code]),
  ]);
  const peak = (await WebAssembly.instantiate(peakModule)).instance.exports.run;
  const rounds = 20_000;
  const peakRate = () => {
    const start = performance.now();
    peak(rounds);
    return (rounds * 24 * 8) / (performance.now() - start) / 1e6;
  };
  // Every 997th element against a sum in float64.
  const agrees = ([, k, n], x, w, result) => {
    for (let at = 0; at < result.length; at += 997) {
      let sum = 0;
      for (let i = 0; i < k; ++i) sum += x[Math.floor(at / n) * k + i] * w[i * n + (at % n)];
      if (!(Math.abs(sum - result[at]) < 1e-4 * Math.sqrt(k))) return false;
    }
    return true;
  };
  const made = [];
  for (const { layout, module, flops, size } of products) {
    const memory = new WebAssembly.Memory({ initial: layout.pages });
    const bytes = new Uint8Array(module);
    const { exports } = (await WebAssembly.instantiate(bytes, { env: { memory } })).instance;
    const viewOf = (tensor) => new Float32Array(memory.buffer, tensor.address, tensor.bytes / 4);
    const fill = (tensor) => {
      const view = viewOf(tensor);
      for (let i = 0; i < view.length; ++i) view[i] = Math.random() - 0.5;
      return view.slice();
    };
    const [w] = layout.init.flatMap((init) => {
      const filled = init.weights.map(fill);
      exports[init.function]();
      return filled;
    });
    const [x] = layout.inputs.map(fill);
    exports.run();
    if (!agrees(size, x, w, viewOf(layout.outputs[0]))) throw new Error(`${size}: wrong`);
    made.push({ run: exports.run, flops });
  }
  const rate = ({ run, flops }) => {
    const count = Math.max(1, Math.ceil(1e8 / flops));
    const start = performance.now();
    for (let i = 0; i < count; ++i) run();
    return (count * flops) / (performance.now() - start) / 1e6;
  };
  const pause = () => new Promise((done) => setTimeout(done, 5));
  for (let i = 0; i < 60; ++i) {
    peakRate();
    made.forEach(rate);
    if (i % 10 === 9) await pause();
  }
  const samples = made.map(() => []);
  for (let i = 0; i < 40; ++i)
    for (const [k, one] of made.entries())
      samples[k].push({ peak: peakRate(), product: rate(one) });
  return samples;
}

const folder = mkdtempSync(join(tmpdir(), "lathe-"));
const products = sizes.map((size) => emitted(folder, size));
rmSync(folder, { recursive: true });
const server = await served({});
const rows = products.map(({ name }) => ({ name, peaks: [], rates: [], shares: [] }));
for (let i = 0; i < Number(options.rounds); ++i) {
  const browser = await launch();
  const page = await (await browser.newContext()).newPage();
  await page.goto(server.url);
  const samples = await page.evaluate(measure, products);
  await browser.close();
  for (const [k, list] of samples.entries()) {
    rows[k].peaks.push(median(list.map(({ peak }) => peak)));
    rows[k].rates.push(median(list.map(({ product }) => product)));
    rows[k].shares.push(median(list.map(({ peak, product }) => product / peak)));
  }
}
server.stop();
const pad = (value, width) => String(value).padStart(width);
console.log("matrix products in Chromium, one thread, f32; the peak is of 128-bit multiply-adds");
console.log(`${"m x k x n".padEnd(16)} ${pad("peak", 8)} ${pad("Lathe", 8)}  share (all rounds)`);
for (const { name, peaks, rates, shares } of rows) {
  const percent = (share) => `${(100 * share).toFixed(0)} %`;
  console.log(
    `${name.padEnd(16)} ${pad(median(peaks).toFixed(1), 8)} ${pad(median(rates).toFixed(1), 8)}  ` +
      `${percent(median(shares))} (${percent(Math.min(...shares))} to ${percent(Math.max(...shares))})`,
  );
}
if (options.json) writeFileSync(options.json, `${JSON.stringify({ rows }, null, 1)}\n`);
