// The engine as a page runs it: WebAssembly against what the native compiler prints.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";

import { instantiate, loadEngine, readModel } from "./engine_host.mjs";

const target = "avx2";

function graphs(folder) {
  const names = fs.readdirSync(folder).filter((name) => name.endsWith(".json.gz"));
  return names.sort().map((name) => path.join(folder, name));
}

// The text that the native driver prints, and whether it is a program or an error.
function native(program, file, passes) {
  const { status, stdout } = spawnSync(program, [file, passes, target], {
    encoding: "utf8",
    maxBuffer: 1 << 30,
  });
  return { ok: status === 0, text: stdout };
}

function compare(engine, lowerModel, file, passes) {
  const expected = native(lowerModel, file, passes);
  const opened = engine.request({ do: "open", name: file }, readModel(file)).json;
  if (opened.error) {
    assert.equal(opened.error.text, expected.text, file);
    return false;
  }
  const run = engine.ask({ do: "compile", model: opened.model, passes, isa: target }).json;
  if (run.failed) {
    assert.equal(run.failed.text, expected.text, file);
  } else {
    const { text } = engine.ask({ do: "text", run: run.run }).json;
    assert.ok(expected.ok, `${file}: ${expected.text}`);
    assert.ok(text === expected.text, `${file}: the texts of '${passes}' differ`);
  }
  engine.ask({ do: "close", model: opened.model, run: run.run });
  return !run.failed;
}

// Runs a program as a page does: weights of a seed one at a time, init, inputs, run, outputs.
function runProgram(engine, model, run, seed) {
  const { layout, memory, exports, put } = instantiate(engine, model, run, seed);
  layout.inputs.forEach(({ address }, input) =>
    put(address, engine.ask({ do: "make_input", model, input, seed }).bytes),
  );
  exports.run();
  return Buffer.concat(
    layout.outputs.map(({ address, bytes: size }) => Buffer.from(memory.buffer, address, size)),
  );
}

export default {
  "is small and asks its host for little": async ([wasm]) => {
    const bytes = fs.readFileSync(wasm);
    const names = WebAssembly.Module.imports(await WebAssembly.compile(bytes)).map((i) => i.name);
    assert.ok(names.length <= 5, names.join());
    assert.ok(zlib.gzipSync(bytes).length < 3e6);
  },

  "lists ops, passes and pipelines": async ([wasm]) => {
    const engine = await loadEngine(wasm);
    const { ops, passes, pipelines } = engine.ask({ do: "catalogue" }).json;
    assert.ok(ops.some((op) => op.name === "softmax" && op.slots.lower === true));
    assert.ok(passes.some((pass) => pass.name === "cse" && pass.example.includes("=>")));
    assert.equal(pipelines[0].name, "default");
    assert.ok(pipelines[0].steps.every((step) => step.why.length > 10));
  },

  "compiles every graph as the native compiler does": async ([wasm, lowerModel, zoo]) => {
    const engine = await loadEngine(wasm);
    let compiled = 0;
    for (const file of graphs(zoo)) compiled += compare(engine, lowerModel, file, "default");
    assert.ok(compiled > 50, `only ${compiled} graphs compiled`);
    assert.ok(engine.memoryBytes() < 1.5e9, `${engine.memoryBytes()} bytes of memory`);
  },

  "prints the same graphs": async ([wasm, lowerModel, zoo]) => {
    const engine = await loadEngine(wasm);
    for (const name of ["resnet18.aten", "bert_base.core"])
      compare(engine, lowerModel, path.join(zoo, `${name}.json.gz`), "graph");
  },

  "makes of every op's example what the native compiler makes": async ([wasm, ...args]) => {
    const engine = await loadEngine(wasm);
    const options = { encoding: "utf8", maxBuffer: 1 << 30 };
    const cases = JSON.parse(execFileSync(args[4], [target], options));
    assert.ok(cases.length > 300, `${cases.length} examples`);
    const differing = [];
    for (const { name, text, results } of cases) {
      const bytes = new TextEncoder().encode(text);
      const { model } = engine.ask({ do: "open", name, dims: {} }, bytes).json;
      for (const [passes, expected] of Object.entries(results)) {
        const { run, failed } = engine.ask({ do: "compile", model, passes, isa: target }).json;
        const made = failed ? failed.text : engine.ask({ do: "text", run }).json.text;
        if (made !== expected) differing.push(`${name} ${passes}`);
      }
      engine.ask({ do: "close" });
    }
    assert.deepEqual(differing, []);
  },

  "reads an archive by ranges and leaves the weights outside": async ([wasm, , , fixtures]) => {
    const engine = await loadEngine(wasm);
    const file = fs.readFileSync(path.join(fixtures, "bert_tiny.pt2"));
    const handed = [];
    const model = engine.openArchive("bert_tiny.pt2", file, handed);
    assert.ok(model.has_weights);
    const places = engine.weightPlaces(model.model, file);
    assert.equal(places.length, model.num_weights);
    const { weights } = engine.ask({ do: "weights", model: model.model }).json;
    for (const place of places) {
      const weight = weights.find((w) => w.name === place.name);
      assert.ok(place.first_byte + weight.num_bytes <= (place.inflated ?? place.size));
    }
    const run = engine.ask({ do: "compile", model: model.model }).json;
    assert.equal(run.form, "planned");
  },

  "compiles an archive's graph as its model JSON": async ([wasm, lowerModel, , fixtures]) => {
    const engine = await loadEngine(wasm);
    for (const name of fs.readdirSync(fixtures).filter((n) => n.endsWith(".pt2")).sort()) {
      const file = path.join(fixtures, name);
      const expected = native(lowerModel, file, "default");
      if (!expected.ok) {
        const open = () => engine.openArchive(file, fs.readFileSync(file));
        assert.throws(open, { message: expected.text });
        continue;
      }
      const { model } = engine.openArchive(name, fs.readFileSync(file));
      const { run } = engine.ask({ do: "compile", model, isa: target }).json;
      const { text } = engine.ask({ do: "text", run }).json;
      assert.ok(text === expected.text, `${name}: the programs differ`);
    }
  },

  "makes the weights of a seed, bit for bit": async ([wasm, , , fixtures, random]) => {
    const engine = await loadEngine(wasm);
    const file = path.join(fixtures, "resnet_tiny.pt2");
    const { model } = engine.openArchive("m.pt2", fs.readFileSync(file));
    const { weights } = engine.ask({ do: "weights", model }).json;
    const seed = "random:7";
    const out = path.join(process.env.TEST_TMPDIR ?? "/tmp", "weight.npz");
    for (const { name, shape, dtype } of weights) {
      execFileSync(random, [out, "7", `${name}:${dtype}:${shape.join("x")}`]);
      const { bytes } = engine.ask({ do: "make_weight", model, name, seed });
      assert.ok(fs.readFileSync(out).includes(Buffer.from(bytes)), name);  // stored, not deflated
      const count = shape.reduce((a, b) => a * b, 1);
      if (count <= 64) continue;
      const head = engine.ask({ do: "make_weight", model, name, seed, count: 64 }).bytes;
      const tail = engine.ask({ do: "make_weight", model, name, seed, first: 64 }).bytes;
      assert.deepEqual(Buffer.concat([head, tail]), Buffer.from(bytes), name);
    }
  },

  "checks a small model against the interpreter": async ([wasm, , zoo]) => {
    const engine = await loadEngine(wasm);
    const file = path.join(zoo, "ffnn.aten.json.gz");
    const { model } = engine.ask({ do: "open", name: "ffnn.json" }, readModel(file)).json;
    const { run } = engine.ask({ do: "compile", model }).json;
    const seeds = { weights: "random:0", inputs: "random:0" };
    const good = engine.ask({ do: "check", run, ...seeds }).json;
    assert.ok(good.passed && good.rmse > 0, JSON.stringify(good));
    // Results that are wrong do not pass.
    const { outputs } = engine.ask({ do: "open", name: "ffnn.json" }, readModel(file)).json;
    const size = 4 * outputs[0].shape.reduce((a, b) => a * b, 1);
    const zeros = new Uint8Array(size);
    const bad = engine.ask({ do: "check", run, ...seeds, results: true }, zeros).json;
    assert.equal(bad.passed, false);
  },

  "runs what it compiled, and the results are right": async ([wasm, , zoo, fixtures]) => {
    const engine = await loadEngine(wasm);
    const seed = "random:0";
    const ffnn = readModel(path.join(zoo, "ffnn.aten.json.gz"));
    const models = [engine.ask({ do: "open", name: "m.json" }, ffnn).json.model];
    for (const name of ["resnet_tiny", "bert_tiny", "gpt_tiny"]) {
      const file = fs.readFileSync(path.join(fixtures, `${name}.pt2`));
      models.push(engine.openArchive(name, file).model);
    }
    for (const model of models) {
      const { run } = engine.ask({ do: "compile", model, isa: "simd128" }).json;
      const outputs = runProgram(engine, model, run, seed);
      const check = { do: "check", run, weights: seed, inputs: seed, results: true };
      const { passed, why } = engine.ask(check, outputs).json;
      assert.ok(passed, why);
      outputs[3] ^= 0x20;  // an exponent
      assert.equal(engine.ask(check, outputs).json.passed, false);
    }
  },

  "answers the same twice": async ([wasm, , zoo]) => {
    const answers = [];
    for (let i = 0; i < 2; ++i) {
      const engine = await loadEngine(wasm);
      const file = path.join(zoo, "resnet18.aten.json.gz");
      const { model } = engine.ask({ do: "open", name: "m.json" }, readModel(file)).json;
      const { run } = engine.ask({ do: "compile", model }).json;
      answers.push(
        engine.request({ do: "graph", run, step: 3, draw: true }).text +
          engine.request({ do: "program", run }).text +
          engine.request({ do: "diff", run, step: 3 }).text,
      );
    }
    assert.ok(answers[0] === answers[1]);
  },

  "refuses broken inputs with a diagnostic": async ([wasm, , zoo, fixtures]) => {
    const engine = await loadEngine(wasm);
    const json = readModel(path.join(zoo, "ffnn.aten.json.gz"));
    for (let size = 0; size < json.length; size += 997) {
      const { error } = engine.request({ do: "open", name: "m.json" }, json.subarray(0, size)).json;
      assert.ok(error.code && error.text && !error.internal, `cut at ${size}`);
    }
    for (let at = 0; at < json.length; at += 499) {
      const broken = Buffer.from(json);
      broken[at] = 0x39;
      const { error } = engine.request({ do: "open", name: "m.json" }, broken).json;
      assert.ok(!error?.internal, `changed at ${at}`);
    }
    const archive = fs.readFileSync(path.join(fixtures, "ffnn.pt2"));
    for (let size = 0; size < archive.length; size += 1 + archive.length / 97)
      assert.throws(() => engine.openArchive("m.pt2", archive.subarray(0, size)), /error\[/);
    const zipped = fs.readFileSync(path.join(zoo, "ffnn.aten.json.gz"));
    assert.match(engine.request({ do: "open", name: "m" }, zipped).json.error.text, /decompresses/);
    assert.match(engine.request("{").json.error.text, /error\[/);
    assert.match(engine.request({ do: "compil" }).json.error.message, /did you mean 'compile'/);
    assert.match(engine.request({ do: "text", run: 99 }).json.error.message, /no run 99/);
  },
};
