// A compiled model for pages and for Node: this file, with a .wasm and a .weights of the same name
// beside it. Nothing else is needed.
//
//   import { load } from "./NAME.mjs";
//   const model = await load();
//   model.inputs                       [{name, dtype, shape}]; an extent that is a size is its text
//   model.bind({ s0: 4 });             where model.symbols is not empty: before the first run
//   const [y] = model.run([x]);        typed arrays, row-major; those that come out are copies
//
// dtypes: f32 is a Float32Array, f64 a Float64Array, i64 a BigInt64Array, i32, i16 and i8 Int
// arrays, u8 and bool a Uint8Array, f16 and bf16 a Uint16Array of their bits.

const kPage = 65536;
const kAlign = 64;
const kLeastRoom = 64; // kernels may read so much of an empty buffer
const kMostBytes = 2 ** 32;
const kMostScratch = 64 * 2 ** 20;
const kHeader = "lathe weights 1\n";

const arrays = {
  f32: Float32Array, f64: Float64Array, i64: BigInt64Array, i32: Int32Array, i16: Int16Array,
  i8: Int8Array, u8: Uint8Array, bool: Uint8Array, f16: Uint16Array, bf16: Uint16Array,
};

// {module, weights}: bytes (or a promise of them) instead of the files beside this one.
export async function load({ module, weights } = {}) {
  const [code, data] = await Promise.all([
    module ?? bytesOf(beside(".wasm")),
    weights ?? bytesOf(beside(".weights")),
  ]);
  const compiled = await WebAssembly.compile(code);
  const [section] = WebAssembly.Module.customSections(compiled, "lathe");
  if (!section) throw new Error("the module is no package of Lathe's");
  const recipe = JSON.parse(new TextDecoder().decode(section));
  if (recipe.version !== 1) throw new Error(`the module is of version ${recipe.version}, not 1`);
  const bytes = new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);
  checkWeights(bytes, recipe.weights);
  const memory = new WebAssembly.Memory({ initial: recipe.pages });
  const instance = await WebAssembly.instantiate(compiled, { env: { memory } });
  return new Model(recipe, instance.exports, memory, bytes);
}

function beside(ending) {
  return new URL(import.meta.url.replace(/\.mjs([?#].*)?$/, ending));
}

async function bytesOf(url) {
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

function checkWeights(bytes, expected) {
  const head = new TextDecoder().decode(bytes.subarray(0, kHeader.length));
  if (head !== kHeader) throw new Error("the weights are no weights file of a package");
  if (bytes.length !== expected.bytes)
    throw new Error(`the weights have ${bytes.length} bytes, expected ${expected.bytes}`);
  const id = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(kHeader.length, true);
  if (id !== BigInt(`0x${expected.id}`))
    throw new Error("the weights belong to another package, or to another compilation");
}

const roundUp = (n, unit) => Math.ceil(n / unit) * unit;
const roomOf = (n) => Math.max(roundUp(n, kAlign), kLeastRoom);

const operations = {
  add: (a, b) => a + b,
  mul: (a, b) => a * b,
  floor_div: (a, b) => (b === 0 ? 0 : Math.floor(a / b)),
  mod: (a, b) => (b === 0 ? 0 : a - b * Math.floor(a / b)),
  max: Math.max,
  min: Math.min,
};
const relations = {
  "==": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b,
  "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
};

function evaluate(tape, sizes) {
  const values = [];
  for (const [op, a, b] of tape) {
    if (op === "fail") throw new RangeError("a size is too large");
    const value = op === "constant" ? a : op === "symbol" ? sizes[a]
      : operations[op](values[a], values[b]);
    if (!Number.isSafeInteger(value)) throw new RangeError("a size is too large");
    values.push(value);
  }
  return values;
}

// Offsets of temporaries in one arena, by buffer, and its size: in order of falling size, each in
// the smallest gap that fits between those alive with it.
function planArena(lives, bytesOfBuffer) {
  const waiting = lives
    .map(([id, first, last]) => ({ id, first, last, bytes: roundUp(bytesOfBuffer[id], kAlign) }))
    .sort((a, b) => b.bytes - a.bytes || a.first - b.first || a.id - b.id);
  const placed = []; // by offset
  const offsets = new Map();
  let size = 0;
  for (const life of waiting) {
    let end = 0, best = -1, bestGap = 0;
    for (const other of placed) {
      if (other.last < life.first || life.last < other.first) continue;
      const gap = other.offset - end;
      if (gap >= life.bytes && (best < 0 || gap < bestGap)) [best, bestGap] = [end, gap];
      end = Math.max(end, other.offset + other.bytes);
    }
    life.offset = best < 0 ? end : best;
    size = Math.max(size, life.offset + life.bytes);
    const at = placed.findIndex((other) => other.offset > life.offset);
    placed.splice(at < 0 ? placed.length : at, 0, life);
    offsets.set(life.id, life.offset);
  }
  return { offsets, size };
}

class Model {
  #recipe; #exports; #memory; #state; #values = null; #address;

  constructor(recipe, exports, memory, weights) {
    this.#recipe = recipe;
    this.#exports = exports;
    this.#memory = memory;
    this.#address = recipe.address;
    const put = ([address, offset, bytes]) =>
      this.#bytes(address, bytes).set(weights.subarray(offset, offset + bytes));
    recipe.kept.forEach(put);
    recipe.init.forEach((staged, i) => {
      staged.forEach(put);
      exports[`init${i}`]();
    });
    this.#state = recipe.state.map(({ buffer, offset, bytes }) => ({
      buffer, bytes: weights.slice(offset, offset + bytes),
    }));
    if (recipe.symbols.length === 0) this.#values = evaluate(recipe.tape, []);
  }

  // [{name, min, max}], max null where there is none.
  get symbols() { return this.#recipe.symbols; }
  get inputs() { return this.#recipe.inputs.map((port) => this.#described(port)); }
  get outputs() { return this.#recipe.outputs.map((port) => this.#described(port)); }

  // {name: size} of every symbol: the sizes of the runs that follow. An error leaves them as they
  // were.
  bind(sizes) {
    const { symbols } = this.#recipe;
    const numbers = symbols.map(({ name, min, max }) => {
      const size = sizes[name];
      if (!Number.isSafeInteger(size)) throw new TypeError(`no size of '${name}' given`);
      if (size < min || (max !== null && size > max))
        throw new RangeError(`'${name}' is ${min} to ${max ?? "any"}, got ${size}`);
      return size;
    });
    if (symbols.length === 0) return;
    const values = evaluate(this.#recipe.tape, numbers);
    this.#check(values);
    const { address, table, end } = this.#place(values);
    const pages = Math.ceil((end + kAlign) / kPage) - this.#memory.buffer.byteLength / kPage;
    if (pages > 0) this.#memory.grow(pages);
    new Int32Array(this.#memory.buffer, this.#recipe.table.address, table.length).set(table);
    this.#address = address;
    this.#values = values;
  }

  // One typed array for each input; those that the model changes are changed in place.
  run(inputs) {
    const recipe = this.#recipe;
    if (!this.#values) throw new Error("bind sizes before the first run");
    if (inputs.length !== recipe.inputs.length)
      throw new TypeError(`${recipe.inputs.length} inputs expected, got ${inputs.length}`);
    recipe.inputs.forEach((port, i) => this.#write(port, inputs[i]));
    for (const { buffer, bytes } of this.#state) this.#of(buffer).set(bytes);
    try {
      this.#exports.run();
    } catch (error) {
      throw this.#failedAssertion() ?? error;
    }
    const outputs = recipe.outputs.map((port) => {
      const bytes = this.#of(port.buffer).slice();
      return new arrays[port.dtype](bytes.buffer);
    });
    for (const [input, output] of recipe.mutations) {
      const bytes = this.#of(output).slice();
      const state = this.#state.find(({ buffer }) => buffer === input);
      const own = recipe.inputs.findIndex(({ buffer }) => buffer === input);
      const to = state ? state.bytes : viewOf(inputs[own]);
      to.set(bytes.subarray(0, to.length));
    }
    return outputs;
  }

  // What the model asserts of its data and does not hold, behind a run that trapped. The number lies
  // less `low` and without its sign bit.
  #failedAssertion() {
    for (const [buffer, lowAt, highAt, message] of this.#recipe.asserts) {
      const [low, high] = [this.#values[lowAt], this.#values[highAt]];
      const key = new DataView(this.#memory.buffer, this.#address[buffer], 8).getBigInt64(0, true);
      const number = BigInt.asIntN(63, key) + BigInt(low);
      if (number >= low && number < high) continue;
      return new RangeError(message.replace("{index}", number).replace("{size}", high));
    }
    return null;
  }

  #bytes(address, count) { return new Uint8Array(this.#memory.buffer, address, count); }
  #of(buffer) {
    return this.#bytes(this.#address[buffer], this.#values[this.#recipe.buffers[buffer]]);
  }

  #described({ name, dtype, shape }) {
    return { name, dtype, shape: shape.map((place) => this.#extent(place)) };
  }
  #extent(place) {
    if (this.#values) return this.#values[place];
    const [op, a, b] = this.#recipe.tape[place];
    if (op === "constant") return a;
    if (op === "symbol") return this.symbols[a].name;
    return `${op}(${this.#extent(a)}, ${this.#extent(b)})`;
  }

  #write(port, array) {
    const Kind = arrays[port.dtype];
    const to = this.#of(port.buffer);
    if (!(array instanceof Kind))
      throw new TypeError(`input '${port.name}' is ${port.dtype}, a ${Kind.name}`);
    const count = port.shape.reduce((n, place) => n * this.#values[place], 1);
    if (array.length !== count)
      throw new RangeError(`input '${port.name}' has ${count} elements, got ${array.length}`);
    to.set(viewOf(array));
  }

  #check(values) {
    const { checks, kernels, fits, alike, buffers } = this.#recipe;
    for (const [relation, a, b, text] of checks)
      if (!relations[relation](values[a], values[b])) throw new RangeError(`sizes must have ${text}`);
    for (const [at, min, max, multiple] of kernels)
      if (values[at] < min || values[at] > max || values[at] % multiple !== 0)
        throw new RangeError(`a kernel cannot take the size ${values[at]}`);
    const fit = fits.every(
      ([needed, has, each, offset]) => values[needed] <= Math.floor(values[has] / each) - offset,
    ) && alike.every(([a, b]) => values[buffers[a]] === values[buffers[b]]);
    if (!fit) throw new RangeError("at these sizes a buffer is too small");
  }

  // Where everything lies that follows from sizes, and the words that launches read.
  #place(values) {
    const { buffers, ports, lives, scratch, rest, table } = this.#recipe;
    const bytes = buffers.map((place) => values[place]);
    const address = [...this.#recipe.address];
    let end = rest;
    const take = (count) => {
      const at = end;
      end += roomOf(count);
      return at;
    };
    let most = 0;
    for (const [fixed, sized] of scratch) {
      const sum = sized.reduce((n, [at, each]) => n + roundUp(values[at] * each, kAlign), fixed);
      most = Math.max(most, sum);
    }
    if (most > kMostScratch) throw new RangeError("at these sizes a kernel needs too much memory");
    const scratchAddress = take(most);
    for (const id of ports) address[id] = take(bytes[id]);
    const arena = planArena(lives, bytes);
    const start = take(arena.size);
    for (const [id, offset] of arena.offsets) address[id] = start + offset;
    if (end + kAlign > kMostBytes)
      throw new RangeError("at these sizes more memory is needed than WebAssembly has");
    const sizes = table.steps.flat().map((place) => values[place]);
    if (sizes.some((size) => size < -(2 ** 31) || size >= 2 ** 32))
      throw new RangeError("a size has more than 32 bits");
    return { address, table: [...address, scratchAddress, ...sizes], end };
  }
}

function viewOf(array) {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
