// Programs that keep symbols, in the engine as a page runs it.
import assert from "node:assert/strict";
import path from "node:path";

import { instantiate, loadEngine, readModel } from "./engine_host.mjs";

// The encoder, compiled for every number of tokens.
async function compiled(wasm, graphs) {
  const engine = await loadEngine(wasm);
  const bytes = readModel(path.join(graphs, "small_encoder.json.gz"));
  const { model } = engine.ask({ do: "open", name: "m.json" }, bytes).json;
  const passes = "default,-specialize_shapes";
  const { run, has_symbols } = engine.ask({ do: "compile", model, passes }).json;
  assert.equal(has_symbols, true);
  return { engine, model, run };
}

// What a page does for each size.
function call({ memory, exports, put }, engine, model, run, seed, dims) {
  const { layout } = engine.ask({ do: "emit", run, what: "layout", dims }).json;
  const missing = layout.pages - memory.buffer.byteLength / 65536;
  if (missing > 0) memory.grow(missing);
  put(layout.table.address, new Uint8Array(new Int32Array(layout.table.words).buffer));
  layout.inputs.forEach(({ address }, input) =>
    put(address, engine.ask({ do: "make_input", model, input, seed, dims }).bytes),
  );
  exports.run();
  return Buffer.concat(
    layout.outputs.map(({ address, bytes }) => Buffer.from(memory.buffer, address, bytes)),
  );
}

export default {
  "runs one module at many sizes, and the results are right": async ([wasm, graphs]) => {
    const { engine, model, run } = await compiled(wasm, graphs);
    const seed = "random:0";
    const loaded = instantiate(engine, model, run, seed);
    for (const size of [64, 1, 130, 7, 65]) {
      const dims = { s27: size };
      const outputs = call(loaded, engine, model, run, seed, dims);
      const check = { do: "check", run, weights: seed, inputs: seed, results: true, dims };
      const { passed, why } = engine.ask(check, outputs).json;
      assert.ok(passed, `${size}: ${why}`);
      outputs[3] ^= 0x20; // an exponent
      assert.equal(engine.ask(check, outputs).json.passed, false);
    }
  },

  "tells what sizes cost, from one end of the range to the other": async ([wasm, graphs]) => {
    const { engine, run } = await compiled(wasm, graphs);
    const { symbols } = engine.ask({ do: "sizes", run }).json;
    const [{ name: along, min, max }] = symbols;
    assert.deepEqual([min, max], [1, 512]);
    const { curve } = engine.ask({ do: "sizes", run, along, points: 24 }).json;
    assert.deepEqual([curve[0].size, curve.at(-1).size], [1, 512]);
    for (const { size, predicted, arena_bytes } of [curve[0], curve[11], curve.at(-1)]) {
      const at = engine.ask({ do: "sizes", run, dims: { [along]: size } }).json;
      assert.deepEqual({ size, predicted: at.predicted, arena_bytes: at.arena_bytes }, {
        size,
        predicted,
        arena_bytes,
      });
    }
    const far = engine.ask({ do: "sizes", run, dims: { [along]: 513 } }).json;
    assert.match(far.refused, /1 to 512/);
    for (const wrong of [{ dims: { s: 1 } }, { along, points: 65 }, { along: "s", points: 2 }])
      assert.equal(engine.request({ do: "sizes", run, ...wrong }).json.error.code, "bad-value");
  },
};
