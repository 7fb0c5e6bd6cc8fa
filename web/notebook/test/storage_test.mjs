// Files and links: what is written reads back, what is foreign is kept, what is broken is refused.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { makeCell } from "../.build/notebook/cell.js";
import { readNotebook, writeNotebook } from "../.build/storage/ipynb.js";
import { foreignFiles, linkOf, readLink } from "../.build/storage/share.js";

const cells = () => [
  makeCell("markdown", "# Title\n\ntext", "title"),
  makeCell("model", 'block = import("attention_block")', "block"),
  makeCell("passes", 'fast = passes(block, "default")', "fast"),
];
const shape = (list) => list.map(({ kind, source, id }) => [kind, source.value, id]);

test("a notebook reads back as it was written", () => {
  const list = cells();
  list[1].folded.value = true;
  const again = readNotebook(writeNotebook(list, "figures"));
  assert.deepEqual(shape(again), shape(list));
  assert.equal(again[1].folded.value, true);
});

test("what is written is nbformat 4.5", () => {
  const file = JSON.parse(writeNotebook(cells(), "all"));
  assert.deepEqual([file.nbformat, file.nbformat_minor], [4, 5]);
  for (const cell of file.cells) {
    assert.match(cell.id, /^[A-Za-z0-9_-]{1,64}$/);
    assert.ok(Array.isArray(cell.source));
    const keys = Object.keys(cell).sort().join();
    if (cell.cell_type === "markdown") assert.equal(keys, "cell_type,id,metadata,source");
    else assert.equal(keys, "cell_type,execution_count,id,metadata,outputs,source");
  }
  assert.deepEqual(file.cells[0].source, ["# Title\n", "\n", "text"]);
});

test("outputs have fallbacks that other programs show", () => {
  const list = cells();
  const info = { name: "m", nodes: 3, num_weights: 0, parameters: 0, weight_bytes: 0 };
  info.inputs = [{ name: "x<script>", type: "f32[2]" }];
  info.outputs = [null];
  const value = { kind: "model", name: "block", model: { info } };
  const source = list[1].source.value;
  list[1].outcome.value = { state: "done", value, milliseconds: 1, source };
  const failure = { message: "no pass named 'x'" };
  list[2].outcome.value = { state: "failed", failure, source: "" };
  const [, model, passes] = JSON.parse(writeNotebook(list, "all")).cells;
  const { data, output_type } = model.outputs[0];
  assert.equal(output_type, "display_data");
  assert.match(data["text/plain"].join(""), /m: 3 nodes/);
  assert.ok(!data["text/html"].join("").includes("<script>"));
  assert.equal(passes.outputs[0].output_type, "error");
});

const time = { median: 2, low: 1, high: 3 };
const figures = {
  runs: [
    {
      name: "fast",
      pipeline: "default",
      model: "abc s0=4",
      target: "relaxed",
      force: ["kernel linear = loops"],
      total: time,
      samples: [1, 2, 3],
      settled: true,
      steps: [
        {
          label: "linear_gelu",
          kernel: 0,
          mean: 2,
          flops: 10,
          bytes: 20,
          region: "linear",
          plan: "loops",
          predicted: 1.5,
          limit: 0.25,
          bound: "memory",
        },
      ],
      memory_bytes: 65536,
      check: { passed: true, max_abs_error: 1e-6 },
    },
  ],
  isa: "relaxed",
  seed: 0,
  gigahertz: 3,
  weights: "mine.pt2",
  when: "2026-11-21T10:00:00.000Z",
  agent: "Chrome/156",
};

function benchNotebook(result) {
  const bench = makeCell("bench", "bench(fast)", "bench");
  const value = { kind: "bench", result };
  bench.outcome.value = { state: "done", value, milliseconds: 1, source: "bench(fast)" };
  return writeNotebook([...cells(), bench], "figures");
}

test("figures of a bench survive, marked as measured earlier", () => {
  const text = benchNotebook(figures);
  const [, model, , bench] = readNotebook(text);
  assert.equal(model.outcome.value.state, "idle");
  assert.equal(bench.outcome.value.state, "kept");
  assert.deepEqual(bench.outcome.value.value.result, figures);
  assert.equal(writeNotebook(readNotebook(text), "figures"), text);
  const skipped = structuredClone(figures);
  skipped.runs[0].check = { skipped: "too large" };
  assert.deepEqual(readNotebook(benchNotebook(skipped))[3].outcome.value.value.result, skipped);
});

test("figures of notebooks from before they said what was measured are read", () => {
  const older = structuredClone(figures);
  delete older.weights;
  delete older.gigahertz;
  for (const run of older.runs) {
    for (const key of ["model", "target", "force"]) delete run[key];
    run.steps = run.steps.map(({ label, kernel, mean, flops, bytes }) => {
      return { label, kernel, time: { ...time, median: mean }, flops, bytes };
    });
  }
  const { result } = readNotebook(benchNotebook(older))[3].outcome.value.value;
  assert.equal(result.runs[0].steps[0].mean, 2);
  assert.equal(result.weights, undefined);
  assert.equal(result.runs[0].force, undefined);
  assert.equal(result.runs[0].steps[0].plan, undefined);
});

test("a bundle's lines stand in the notebook for programs that cannot open it", () => {
  const cell = makeCell("bundle", 'bundle("mine.zip")', "bundle");
  const info = {
    model: "Mine",
    compiles: [{ id: "0_0", frame: 0, graph: { ops: 1, ends: "break", inputs: [] }, break: 0 }],
    breaks: [{ file: "m.py", line: 7, reason: "a <print>", hints: [], lines: [] }],
    num_recompiles: 1,
    recompiles: [{ id: "0_1", call: 1, file: "m.py", line: 9, reason: "n == 3", follow: [] }],
  };
  const value = { kind: "bundle", file: "mine.zip", info };
  cell.outcome.value = { state: "done", value, milliseconds: 1, source: cell.source.value };
  const written = writeNotebook([cell], "all");
  const [{ outputs }] = JSON.parse(written).cells;
  const text = outputs[0].data["text/plain"].join("");
  assert.match(text, /^Mine: 1 graph, 1 graph break, 1 recompile\n/);
  assert.match(text, /break +m\.py:7 +a <print>\nrecompile +m\.py:9 +call 1: n == 3/);
  assert.match(outputs[0].data["text/html"].join(""), /a &lt;print&gt;/);
  assert.equal(readNotebook(written)[0].kind, "bundle");
  assert.deepEqual(JSON.parse(writeNotebook([cell], "figures")).cells[0].outputs, []);
});

test("figures that no bench would write are not taken", () => {
  const refuses = (what, change) => {
    const file = JSON.parse(benchNotebook(figures));
    change(file.cells[3].outputs[0].data["application/vnd.lathe.bench+json"]);
    const read = readNotebook(JSON.stringify(file))[3];
    assert.equal(read.outcome.value.state, "idle", what);
    assert.equal(read.source.value, "bench(fast)");
  };
  const [first] = figures.runs;
  refuses("no runs", (broken) => (broken.runs = []));
  refuses("too many runs", (broken) => (broken.runs = new Array(65).fill(first)));
  refuses("a text for a time", ({ runs }) => (runs[0].total.median = "<b>1</b>"));
  refuses("no finite time", ({ runs }) => (runs[0].total.low = -1));
  refuses("too many samples", ({ runs }) => (runs[0].samples = new Array(10_001).fill(1)));
  refuses("too many steps", ({ runs }) => (runs[0].steps = new Array(10_001).fill(first.steps[0])));
  refuses("an object for a name", ({ runs }) => (runs[0].name = { toString: 1 }));
  refuses("an endless name", ({ runs }) => (runs[0].name = "a".repeat(20_000)));
  refuses("half a kernel", ({ runs }) => (runs[0].steps[0].kernel = 0.5));
  refuses("an unknown bound", ({ runs }) => (runs[0].steps[0].bound = "luck"));
  refuses("no limit of time", ({ runs }) => (runs[0].steps[0].limit = "none"));
  refuses("no decisions", ({ runs }) => (runs[0].force = "kernel linear = loops"));
  refuses("no verdict", ({ runs }) => (runs[0].check = {}));
  refuses("no date", (broken) => (broken.when = "yesterday"));
});

test("cells of other programs are kept word for word", () => {
  const python = {
    cell_type: "code",
    execution_count: 7,
    id: "py",
    metadata: { tags: ["keep"] },
    outputs: [{ output_type: "stream", name: "stdout", text: ["hi\n"] }],
    source: ["print('hi')"],
  };
  const text = { cell_type: "markdown", id: "t", metadata: { tags: ["a"] }, source: "x" };
  const raw = { cell_type: "raw", id: "r", metadata: {}, source: "" };
  const file = { nbformat: 4, nbformat_minor: 5, metadata: {}, cells: [python, text, raw] };
  const read = readNotebook(JSON.stringify(file));
  assert.deepEqual(
    read.map(({ kind }) => kind),
    ["foreign", "markdown", "foreign"],
  );
  const written = JSON.parse(writeNotebook(read, "all")).cells;
  assert.deepEqual(written[0], python);
  assert.deepEqual(written[1].metadata, { tags: ["a"] });
  assert.deepEqual(written[2], raw);
});

test("missing, equal and unusable ids become fresh ones", () => {
  const cell = (id) => ({ cell_type: "markdown", metadata: {}, source: "", ...(id && { id }) });
  const file = { nbformat: 4, cells: [cell("a"), cell("a"), cell(""), cell("not an id")] };
  const ids = readNotebook(JSON.stringify(file)).map(({ id }) => id);
  assert.equal(new Set(ids).size, 4);
  assert.equal(ids[0], "a");
});

test("what is no notebook is refused with a reason", () => {
  const refuses = (text, why) => assert.throws(() => readNotebook(text), why);
  refuses("{", /not JSON/);
  refuses("[]", /no notebook/);
  refuses('{"nbformat": 3, "cells": []}', /format 3/);
  refuses('{"nbformat": 4, "cells": [{}]}', /cell 1 has no text/);
  refuses('{"nbformat": 4, "cells": [null]}', /cell 1 has no text/);
});

test("the lessons are notebooks whose code cells are understood", async () => {
  const { understand } = await import("../.build/source/cell_code.js");
  const folder = new URL("../../lessons/", import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith(".ipynb"));
  assert.ok(names.length >= 2);
  for (const name of names)
    for (const { kind, source } of readNotebook(readFileSync(new URL(name, folder), "utf8")))
      if (kind !== "markdown") assert.ok(understand(source.value).ok, `${name}: ${source.value}`);
});

test("a link reads back, and says what it cannot carry", async () => {
  const link = await linkOf(cells());
  assert.match(link, /^#s=v1\.[A-Za-z0-9_-]+$/);
  const again = await readLink(link);
  assert.deepEqual(
    again.map(({ kind, source }) => [kind, source.value]),
    cells().map(({ kind, source }) => [kind, source.value]),
  );
  assert.equal(await readLink("#elsewhere"), null);
  const mine = makeCell("model", 'm = import("mine.pt2")');
  const captured = makeCell("bundle", 'bundle("mine.zip")');
  assert.deepEqual(
    foreignFiles([...cells(), mine, captured], (name) => !name.includes(".")),
    ["mine.pt2", "mine.zip"],
  );
});

test("links of today open forever", async () => {
  const old = "#s=v1.i45Wys1PSc1R0lFKyslPzlawVcjMLcgvKtGIUUosKUnNK8nMz4sHS8UoaSrFxgIA";
  const read = await readLink(old);
  assert.deepEqual(
    read.map(({ source }) => source.value),
    ['block = import("attention_block")'],
  );
});

test("broken, cut and swollen links are refused", async () => {
  const link = await linkOf(cells());
  await assert.rejects(readLink(link.slice(0, -8)), /damaged/);
  await assert.rejects(readLink("#s=v1.!!!"), /damaged/);
  await assert.rejects(readLink("#s=v9.abc"), /version/);
  const big = await linkOf([makeCell("markdown", "a".repeat(1 << 21))]).catch((error) => error);
  if (typeof big === "string") await assert.rejects(readLink(big), /damaged/);
  const noise = Array.from({ length: 30_000 }, (_, i) => ((i * 7919) % 9973).toString(36)).join("");
  await assert.rejects(linkOf([makeCell("markdown", noise)]), /letters/);
});
