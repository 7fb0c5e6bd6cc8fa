// The notebook page beside onnxruntime-web, one thread each, in the same Chromium:
//
//     npm ci --prefix tests/bench/web
//     .lathe/venv/bin/python tests/bench/web/write_onnx.py .lathe/onnx resnet18 bert_base
//     node tests/bench/web/peers.mjs [--models resnet18,bert_base] [--rounds 5] [--json OUT]
//
// after `./lathe web` has built the page. Every sample is a fresh browser process: the two take
// turns, and who begins changes with the round. Lathe is measured by a bench cell of the page itself.
// Both run the zoo's graph with the weights and inputs of seed 0; their results are compared with
// those of PyTorch eager. A ratio above 1: Lathe is faster; its range is that of the rounds.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { launch, openPage, repository, serve, settled } from "../../../web/notebook/test/browser.mjs";
import { floatsOf, resultsOf, watchKernels } from "../../../web/notebook/test/kernel_results.mjs";
import { median, served } from "./served.mjs";

const tolerance = 1e-4; // relative, and absolute times the results' root mean square
const repeats = 15; // runs in one process that are timed

const { values: options } = parseArgs({
  options: {
    models: { type: "string", default: "resnet18,bert_base" },
    rounds: { type: "string", default: "5" },
    data: { type: "string", default: join(repository, ".lathe/onnx") },
    json: { type: "string" },
  },
});

// The largest error over what the tolerance allows: at most 1 is agreement.
function largestError(found, facts) {
  let worst = found.length === facts.results.length ? 0 : Infinity;
  for (const [k, { file }] of facts.results.entries()) {
    const wanted = new Float32Array(new Uint8Array(readFileSync(join(options.data, file))).buffer);
    const got = found[k] ?? [];
    if (got.length !== wanted.length) return Infinity;
    const rms = Math.sqrt(wanted.reduce((sum, x) => sum + x * x, 0) / wanted.length);
    wanted.forEach((x, i) => {
      const error = Math.abs(got[i] - x) / (tolerance * (Math.abs(x) + rms));
      if (!(error <= worst)) worst = error;
    });
  }
  return worst;
}

// Runs in the browser. As the page does: until three runs agree within 3 %, then the samples.
async function runPeer({ name, facts, repeats }) {
  const ort = await import("/ort/ort.wasm.min.mjs");
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = "/ort/";
  const bytes = async (file) => await (await fetch(`/data/${file}`)).arrayBuffer();
  const session = await ort.InferenceSession.create(new Uint8Array(await bytes(`${name}.onnx`)), {
    executionProviders: ["wasm"],
    graphOptimizationLevel: "all",
  });
  const arrays = { float32: Float32Array, int64: BigInt64Array };
  const feeds = {};
  for (const [k, { file, dtype, shape }] of facts.inputs.entries()) {
    const data = new arrays[dtype](await bytes(file));
    feeds[session.inputNames[k]] = new ort.Tensor(dtype, data, shape);
  }
  const timed = async () => {
    const start = performance.now();
    const results = await session.run(feeds);
    return { ms: performance.now() - start, results };
  };
  const last = [];
  for (const begin = performance.now(); performance.now() - begin < 5000; ) {
    last.push((await timed()).ms);
    const three = last.slice(-3);
    if (three.length === 3 && Math.max(...three) <= 1.03 * Math.min(...three)) break;
  }
  const samples = [];
  let results;
  for (let i = 0; i < repeats; ++i) {
    const one = await timed();
    samples.push(one.ms);
    results = one.results;
  }
  return { samples, results: session.outputNames.map((key) => Array.from(results[key].data)) };
}

async function peerSample(url, name, facts) {
  const browser = await launch();
  try {
    const page = await (await browser.newContext()).newPage();
    await page.goto(url);
    return await page.evaluate(runPeer, { name, facts, repeats });
  } finally {
    await browser.close();
  }
}

function notebook(name) {
  const cell = (kind, source) => ({
    cell_type: "code",
    execution_count: null,
    id: kind,
    metadata: { lathe: { kind } },
    outputs: [],
    source: [source],
  });
  const cells = [
    cell("model", `model = import("${name}.aten")`),
    cell("passes", 'fast = passes(model, "default")'),
    cell("bench", `bench(fast, repeats=${repeats})`),
  ];
  return JSON.stringify({ cells, metadata: {}, nbformat: 4, nbformat_minor: 5 });
}

async function latheSample(url, name) {
  const browser = await launch();
  try {
    const { page, problems } = await openPage(browser, url);
    await watchKernels(page);
    await page.evaluate((text) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([text], "bench.ipynb"));
      for (const kind of ["dragover", "drop"]) {
        const event = new DragEvent(kind, { dataTransfer: transfer, bubbles: true });
        document.querySelector(".page").dispatchEvent(event);
      }
    }, notebook(name));
    await page.waitForFunction(() => document.querySelector(".title").value === "bench");
    await settled(page);
    await page.locator('.cell.bench button:has-text("Run")').click();
    await page.waitForTimeout(200);
    await settled(page);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.locator('header button:has-text("Download")').click(),
    ]);
    const { cells } = JSON.parse(readFileSync(await download.path(), "utf8"));
    const output = cells[2].outputs[0];
    if (output.output_type === "error") throw new Error(output.evalue);
    if (problems.length) throw new Error(problems.join("\n"));
    const result = output.data["application/vnd.lathe.bench+json"];
    const [run] = result.runs;
    const results = (await resultsOf(page)).map(floatsOf);
    return { samples: run.samples, results, isa: result.isa, agent: result.agent };
  } finally {
    await browser.close();
  }
}

const pad = (text, width) => String(text).padStart(width);
const rows = [];
const peers = await served({
  ort: join(repository, "tests/bench/web/node_modules/onnxruntime-web/dist"),
  data: options.data,
});
const page = await serve();
console.log("Lathe's page beside onnxruntime-web 1.30, one thread; a ratio above 1: Lathe is faster");
console.log(`${"model".padEnd(12)} ${pad("ORT web", 10)} ${pad("Lathe", 10)} ${pad("ratio", 7)}  range`);
for (const name of options.models.split(",")) {
  const facts = JSON.parse(readFileSync(join(options.data, `${name}.json`), "utf8"));
  const rounds = [];
  let error = 0;
  let last;
  for (let i = 0; i < Number(options.rounds); ++i) {
    const turns = [
      ["ort", () => peerSample(peers.url, name, facts)],
      ["lathe", () => latheSample(page.url, name)],
    ];
    if (i % 2) turns.reverse();
    const round = {};
    for (const [who, sample] of turns) {
      const one = await sample();
      round[who] = median(one.samples);
      error = Math.max(error, largestError(one.results, facts));
      if (who === "lathe") last = one;
    }
    rounds.push(round);
  }
  const ratios = rounds.map((round) => round.ort / round.lathe);
  const row = {
    model: name,
    ort_ms: median(rounds.map((round) => round.ort)),
    lathe_ms: median(rounds.map((round) => round.lathe)),
    ratio: median(ratios),
    ratio_low: Math.min(...ratios),
    ratio_high: Math.max(...ratios),
    rounds,
    error,
    isa: last.isa,
    agent: last.agent,
  };
  rows.push(row);
  console.log(
    `${name.padEnd(12)} ${pad(row.ort_ms.toFixed(1), 7)} ms ${pad(row.lathe_ms.toFixed(1), 7)} ms ` +
      `${pad(row.ratio.toFixed(2), 6)}x  ${row.ratio_low.toFixed(2)} to ${row.ratio_high.toFixed(2)}` +
      (error <= 1 ? "" : `  WRONG: ${error.toFixed(1)} x the tolerance`),
  );
}
page.stop();
peers.stop();
if (options.json) writeFileSync(options.json, `${JSON.stringify({ rows }, null, 1)}\n`);
process.exitCode = rows.every(({ error }) => error <= 1) ? 0 : 1;
