// Programs that keep symbols, in the engine as a page runs it.
import assert from "node:assert/strict";
import path from "node:path";

import { loadEngine, readModel } from "./engine_host.mjs";

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

export default {
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
