// Loads engine.wasm and speaks its C ABI: what a page's worker does, in Node.
import fs from "node:fs";
import zlib from "node:zlib";

export async function loadEngine(path) {
  let memory;
  const imports = {
    env: { emscripten_notify_memory_growth() {} },
    wasi_snapshot_preview1: {
      proc_exit(code) {
        throw new Error(`the engine exited with ${code}`);
      },
      clock_time_get(_clock, _precision, out) {
        const nanoseconds = BigInt(Math.round(performance.now() * 1e6));
        new DataView(memory.buffer).setBigUint64(out, nanoseconds, true);
        return 0;
      },
      environ_sizes_get(count, size) {
        new DataView(memory.buffer).setUint32(count, 0, true);
        new DataView(memory.buffer).setUint32(size, 0, true);
        return 0;
      },
      environ_get: () => 0,
    },
  };
  const module = await WebAssembly.compile(fs.readFileSync(path));
  const unknown = WebAssembly.Module.imports(module).filter((i) => !imports[i.module]?.[i.name]);
  if (unknown.length > 0) throw new Error(`unknown imports: ${JSON.stringify(unknown)}`);
  const { exports } = await WebAssembly.instantiate(module, imports);
  memory = exports.memory;
  exports._initialize();
  return new Engine(exports);
}

// Any file of a model, unpacked as far as the engine wants it to be.
export function readModel(path) {
  const bytes = fs.readFileSync(path);
  return path.endsWith(".gz") ? zlib.gunzipSync(bytes) : bytes;
}

// The module of a run in a memory of its own, with the weights of a seed in it and init run: what a
// page does once. {layout, memory, exports, put}: put writes bytes to an address.
export function instantiate(engine, model, run, seed) {
  const { json, bytes } = engine.ask({ do: "emit", run, what: "wasm" });
  const { layout } = json;
  const memory = new WebAssembly.Memory({ initial: layout.pages });
  const module = new WebAssembly.Module(bytes);
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  const put = (address, values) => new Uint8Array(memory.buffer).set(values, address);
  const weigh = ({ name, address }) =>
    put(address, engine.ask({ do: "make_weight", model, name, seed }).bytes);
  layout.weights.forEach(weigh);
  for (const launch of layout.init) {
    launch.weights.forEach(weigh);
    exports[launch.function]();
  }
  return { layout, memory, exports, put };
}

class Engine {
  constructor(exports) {
    this.exports = exports;
  }

  // {json, bytes}: the answer's object and, when there are any, a copy of its bytes.
  request(object, bytes = new Uint8Array()) {
    const text = typeof object === "string" ? object : JSON.stringify(object);
    return this.#call(new TextEncoder().encode(text), bytes);
  }

  // As request, but an error of the engine's is one of JavaScript's.
  ask(object, bytes) {
    const answer = this.request(object, bytes);
    if (answer.json.error) throw new Error(answer.json.error.text);
    return answer;
  }

  // Opens an archive that stays outside: the engine gets only the ranges it asks for.
  // `handed` collects their sizes.
  openArchive(name, file, handed = []) {
    let answer = this.ask({ do: "open", name, size: file.length });
    while (answer.json.need) {
      const ranges = answer.json.need;
      answer = this.ask({ do: "open", file: answer.json.file, ranges }, pick(file, ranges, handed));
    }
    return answer.json;
  }

  weightPlaces(model, file) {
    let answer = this.ask({ do: "weight_places", model });
    while (answer.json.need) {
      const ranges = answer.json.need;
      answer = this.ask({ do: "weight_places", model, ranges }, pick(file, ranges, []));
    }
    return answer.json.places;
  }

  memoryBytes() {
    return this.exports.memory.buffer.byteLength;
  }

  #call(text, bytes) {
    const { exports } = this;
    const textAt = this.#put(text);
    const bytesAt = this.#put(bytes);
    const answer = exports.lathe_engine_request(textAt, text.length, bytesAt, bytes.length);
    exports.lathe_engine_release(textAt);
    exports.lathe_engine_release(bytesAt);
    const words = new Uint32Array(exports.memory.buffer, answer, 4);
    const [at, size, bytesOut, numBytes] = words;
    const answered = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, size));
    const out = new Uint8Array(exports.memory.buffer, bytesOut, numBytes).slice();
    return { json: JSON.parse(answered), text: answered, bytes: out };
  }

  #put(bytes) {
    const at = this.exports.lathe_engine_allocate(bytes.length);
    if (at === 0) throw new Error(`the engine has no room for ${bytes.length} bytes`);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }
}

function pick(file, ranges, handed) {
  const parts = ranges.map(({ begin, size, inflated }) => {
    const bytes = file.subarray(begin, begin + size);
    handed.push(size);
    return inflated === undefined ? bytes : zlib.inflateRawSync(bytes);
  });
  return Buffer.concat(parts);
}
