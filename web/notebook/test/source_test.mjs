// The language of cells: what it means, where its errors point, what completes it, and pipelines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { understand } from "../.build/source/cell_code.js";
import { completionsAt } from "../.build/source/complete.js";
import { decided, isDecided, undecided } from "../.build/source/force.js";
import * as kernelNames from "../.build/source/kernel_names.js";
import { nearest } from "../.build/source/nearest.js";
import { parse, quote, unquote } from "../.build/source/parse.js";
import * as pipeline from "../.build/source/pipeline.js";
import { splitPath } from "../.build/source/zip_path.js";

const meaning = (text) => {
  const understood = understand(text);
  assert.ok(understood.ok, JSON.stringify(understood));
  return understood.code;
};
const mistake = (text) => {
  const understood = understand(text);
  assert.ok(!understood.ok, `no error in ${text}`);
  const { from, to, message } = understood.error;
  return [text.slice(from, to), message];
};

test("a model cell names a file and sizes", () => {
  const code = meaning('# my model\nblock = import("attention_block", s0=64)');
  assert.deepEqual(code, {
    kind: "model",
    name: "block",
    file: "attention_block",
    dims: { s0: 64 },
  });
});

test("a bundle cell names a file and has no name", () => {
  assert.deepEqual(meaning('bundle("m.zip")'), { kind: "bundle", file: "m.zip" });
  assert.match(mistake("bundle(m)")[1], /expected a file in quotes, such as "model\.zip"/);
  assert.deepEqual(mistake("bundle()")[0], "bundle");
  assert.deepEqual(mistake('bundle("m.zip", s0=3)'), [
    "s0",
    "a bundle takes nothing but its file",
  ]);
  assert.deepEqual(mistake('b = bundle("m.zip")'), [
    "b",
    "a bundle has no name; write bundle(...)",
  ]);
});

test("a path into a zip names the zip and its entry", () => {
  const inside = { path: "m.zip", entry: "graphs/0_1.json" };
  assert.deepEqual(splitPath("m.zip/graphs/0_1.json"), inside);
  for (const path of ["m.zip", "m.pt2", "attention_block", "a/b.json"])
    assert.deepEqual(splitPath(path), { path, entry: null });
});

test("a passes cell knows where its pipeline stands", () => {
  const text = 'fast = passes(block, "default,-cse", target="relaxed")';
  const code = meaning(text);
  assert.equal(code.pipeline.value, "default,-cse");
  assert.equal(text.slice(code.pipeline.from, code.pipeline.to), '"default,-cse"');
  assert.equal(code.target, "relaxed");
});

test("decisions are added to a cell's text, replaced and taken out", () => {
  const plain = 'fast = passes(block, "default", target="relaxed")';
  const add = (text, region, ...lines) => decided(text, meaning(text), region, lines);
  const one = add(plain, "mm", "kernel mm = loops");
  assert.equal(one, `${plain.slice(0, -1)}, force="kernel mm = loops")`);
  const two = add(one, "mm_1", "kernel mm_1 = contraction", "tile mm_1 = 6x2");
  const lines = ["kernel mm = loops", "kernel mm_1 = contraction", "tile mm_1 = 6x2"];
  assert.deepEqual(
    meaning(two).force.map(({ value }) => value),
    lines,
  );
  assert.ok(isDecided(meaning(two), "mm_1") && !isDecided(meaning(two), "mm_"));
  assert.equal(add(two, "mm_1"), one);
  assert.equal(undecided(one, meaning(one), 0), plain);
  const other = add(two, "mm", "kernel mm = scan");
  assert.deepEqual(
    meaning(other).force.map(({ value }) => value),
    [lines[1], lines[2], "kernel mm = scan"],
  );
  const keeps = 'fast = passes(block, "default", force="keep mm", )';
  assert.equal(add(keeps, "mm"), keeps, "to keep apart is no kind of kernel");
  assert.match(mistake('f = passes(b, "default", force=3)')[1], /is 3, expected a decision/);
  assert.match(mistake('f = passes(b, "default", fource="x")')[1], /did you mean 'force'\?/);
});

test("a bench cell has defaults and no name", () => {
  const code = meaning("bench(fast, plain)");
  assert.deepEqual([code.repeats, code.seed, code.runs.length], [20, 0, 2]);
  assert.match(mistake("x = bench(fast)")[1], /has no name/);
});

test("errors point at their place and say what was expected", () => {
  assert.deepEqual(mistake('x = imprt("a")'), [
    "imprt",
    "no call named 'imprt'; did you mean 'import'?",
  ]);
  assert.deepEqual(mistake("x = import(3)")[0], "3");
  assert.match(
    mistake('x = import("a"')[1],
    /expected ',' between arguments, or '\)', got the end/,
  );
  assert.match(mistake('x = import("a')[1], /quote never ends/);
  assert.match(mistake('x = import("a") y')[1], /expected the end, got 'y'/);
  assert.match(mistake('x = import("a", s0="b")')[1], /'s0' is b, expected a size/);
  assert.match(mistake("bench(fast, repeat=3)")[1], /did you mean 'repeats'\?/);
  assert.match(mistake("bench(fast, repeats=0)")[1], /whole number from 1/);
  assert.match(mistake('passes(block, "a")')[1], /needs a name/);
  assert.deepEqual(mistake("x = $")[0], "$");
  assert.match(mistake("")[1], /got the end/);
});

test("no text makes the parser fail in another way", () => {
  let seed = 1;
  const letters = 'ab1"\\(),=#\n {}-.$é';
  for (let i = 0; i < 3000; ++i) {
    let text = "";
    for (let k = 0; k < i % 40; ++k) {
      seed = (seed * 48271) % 2147483647;
      text += letters[seed % letters.length];
    }
    const parsed = parse(text);
    if (!parsed.ok)
      assert.ok(parsed.error.from <= parsed.error.to && parsed.error.to <= text.length);
  }
});

test("a quoted text reads back", () => {
  for (const text of ["a", 'say "x"', "back\\slash"]) assert.equal(unquote(quote(text)), text);
});

test("the nearest word is near", () => {
  assert.equal(nearest("defualt", ["default", "minimal"]), "default");
  assert.equal(nearest("xyz", ["default", "minimal"]), null);
});

const catalogue = {
  passes: [{ name: "cse", summary: "one of equals" }],
  pipelines: [
    {
      name: "short",
      summary: "",
      steps: ["a", "dce", "b", "dce"].map((step) => ({ step, why: "w" })),
    },
  ],
};
const chips = (text) => pipeline.chipsOf(text, catalogue.pipelines);
const texts = (list) => list.map(({ text, isOn }) => (isOn ? text : `(${text})`)).join(" ");

test("a named pipeline becomes chips with reasons", () => {
  assert.equal(texts(chips("short,-b,cse{keep=x,y}")), "a dce (b) dce cse{keep=x,y}");
  assert.equal(chips("short")[0].why, "w");
});

test("switching keeps the name, and switches back", () => {
  const off = pipeline.toggled("short", chips("short"), 1);
  assert.equal(off, "short,-dce");
  assert.equal(texts(chips(off)), "a (dce) b (dce)");
  assert.equal(pipeline.toggled(off, chips(off), 1), "short");
});

test("moving, adding and taking out spell the steps", () => {
  assert.equal(pipeline.moved(chips("short"), 0, 2), "dce,b,a,dce");
  assert.equal(pipeline.moved(chips("a,b,c,-b"), 1, 0), "b,a,c,-b");
  assert.equal(pipeline.without(chips("short"), 3), "a,dce,b");
  assert.equal(pipeline.inserted(chips("a,b"), 1, "cse"), "a,cse,b");
  const options = { keep: "softmax,gelu", note: 'two "words"' };
  const text = pipeline.withOptions(chips("a,b"), 1, options);
  assert.equal(text, 'a,b{keep=softmax,gelu note="two \\"words\\""}');
  assert.deepEqual(pipeline.splitSteps(text).length, 2);
  assert.equal(pipeline.withOptions(chips(text), 1, {}), "a,b");
});

test("completions fit their place", () => {
  const known = {
    bundles: ["mine.zip"],
    models: ["attention_block"],
    modelNames: ["block"],
    passesNames: ["fast"],
    targets: ["relaxed"],
    catalogue,
    canBench: true,
  };
  const labels = (text) =>
    completionsAt(text, text.length, known)?.options.map(({ label }) => label);
  assert.deepEqual(labels("x = im"), ["import", "passes", "bundle", "bench"]);
  assert.deepEqual(labels('bundle("'), ["mine.zip"]);
  assert.deepEqual(labels('x = import("att'), ["attention_block"]);
  assert.deepEqual(labels("x = passes(b"), ["block"]);
  assert.deepEqual(labels('x = passes(block, "short,-c'), ["short", "cse"]);
  assert.deepEqual(labels('x = passes(block, "short", target="'), ["relaxed"]);
  assert.deepEqual(labels('x = passes(block, "short", '), ["target", "force"]);
  assert.deepEqual(labels('x = passes(block, "short", force="ke'), ["kernel", "tile", "keep"]);
  assert.equal(labels('x = passes(block, "short", force="kernel a'), undefined);
  assert.deepEqual(labels("bench(f"), ["fast", "repeats", "seed"]);
});

test("a kernel's names are found in its loops and in its WebAssembly", () => {
  const loops = "kernel @k(%x: f32[4], %xy: f32[4]) {\n  for %k in 0..4 { load %x[%k] }\n}";
  const wat = [
    "(module $main",
    "  (func $k0 (param $x.0 i32)",
    "    loop  ;; k",
    "      local.get $x.0",
    "    end",
    "  )",
    "  (func $k00 (param $xy.1 i32)",
    "  )",
    ")",
  ].join("\n");
  const body = kernelNames.functionIn(wat, "k0");
  assert.ok(body.includes("loop  ;; k") && !body.includes("k00"), body);
  assert.match(kernelNames.functionIn(wat, "k00"), /\$xy\.1/);
  assert.equal(kernelNames.functionIn(wat, "k7"), "");
  assert.deepEqual(kernelNames.sharedNames(loops, body), ["x", "k"]);
  const words = (text, matches) => matches.map(({ from, to }) => text.slice(from, to));
  assert.deepEqual(words(loops, kernelNames.inLoops(loops, "x")), ["%x", "%x"]);
  assert.deepEqual(words(body, kernelNames.inWat(body, "x")), ["$x.0", "$x.0"]);
  assert.deepEqual(words(body, kernelNames.inWat(body, "k")), ["k"]);
  assert.equal(kernelNames.nameAt(loops, loops.indexOf("%xy") + 1), "xy");
  assert.equal(kernelNames.nameAt(wat, wat.indexOf("$x.0") + 2), "x");
  assert.equal(kernelNames.nameAt("  ", 1), null);
});
