// Runs WebAssembly modules for Lathe, one at a time. Standard input and output carry frames, little-endian:
//
//   request   u32 kind, u32 bytes, then that many bytes
//   answer    u32 status (0: done, 1: the bytes are an error's text), u32 bytes, the bytes
//
//   kind      request's bytes                  answer
//   1 load    u32 pages, the module            nothing
//   2 write   u32 address, what goes there     nothing
//   3 call    i32 arguments count and values,  f64 milliseconds
//             the function's name
//   4 read    u32 address, u32 bytes           the bytes
//   5 steps   u32 count                        f64 milliseconds of step0, step1, ...
//   6 grow    u32 pages more                   nothing
//
// Before the first request it answers with its version and whether relaxed SIMD is there. It ends
// when its input does.
import fs from 'node:fs';

const kMostAtOnce = 1 << 30; // one system call takes less than 2 GiB

// (func (drop (f32x4.relaxed_madd ...))), or what is left of it without relaxed SIMD.
const relaxedModule = new Uint8Array([
  0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 62, 1, 60, 0,
  ...[0, 1, 2].flatMap(() => [0xfd, 12, ...new Array(16).fill(0)]),
  0xfd, 0x85, 0x02, 0x1a, 0x0b,
]);

let memory = null;
let instance = null;

function readInto(target) {
  for (let at = 0; at < target.length;) {
    const count = fs.readSync(0, target, at, Math.min(target.length - at, kMostAtOnce), null);
    if (count === 0) process.exit(0);
    at += count;
  }
}

function writeAll(bytes) {
  for (let at = 0; at < bytes.length;)
    at += fs.writeSync(1, bytes, at, Math.min(bytes.length - at, kMostAtOnce));
}

function answer(status, bytes) {
  const head = new Uint32Array([status, bytes.length]);
  writeAll(new Uint8Array(head.buffer));
  writeAll(bytes);
}

function readWords(count) {
  const bytes = new Uint8Array(4 * count);
  readInto(bytes);
  return new Uint32Array(bytes.buffer);
}

function readRest(count) {
  const bytes = new Uint8Array(count);
  readInto(bytes);
  return bytes;
}

function timed(call) {
  const start = performance.now();
  call();
  return performance.now() - start;
}

const floats = (values) => new Uint8Array(new Float64Array(values).buffer);
const nothing = new Uint8Array(0);

// Every request's bytes are read whole before anything can fail, so that the next one is found.
const requests = {
  1: (size) => {
    const [pages] = readWords(1);
    const bytes = readRest(size - 4);
    return () => {
      memory = null; // the last module's, which may be collected now
      instance = null;
      memory = new WebAssembly.Memory({ initial: pages });
      instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
      return nothing;
    };
  },
  2: (size) => {
    const [address] = readWords(1);
    const length = size - 4;
    if (!memory || address + length > memory.buffer.byteLength) {
      readRest(length);
      return () => { throw new RangeError(`no memory at ${address}`); };
    }
    readInto(new Uint8Array(memory.buffer, address, length));
    return () => nothing;
  },
  3: (size) => {
    const [count] = readWords(1);
    const args = new Int32Array(readWords(count).buffer);
    const name = new TextDecoder().decode(readRest(size - 4 - 4 * count));
    return () => floats([timed(() => instance.exports[name](...args))]);
  },
  4: () => {
    const [address, length] = readWords(2);
    return () => new Uint8Array(memory.buffer, address, length);
  },
  5: () => {
    const [count] = readWords(1);
    return () => floats(Array.from({ length: count }, (_, i) => timed(instance.exports[`step${i}`])));
  },
  6: () => {
    const [pages] = readWords(1);
    return () => {
      memory.grow(pages);
      return nothing;
    };
  },
};

const hello = `${process.versions.node} ${WebAssembly.validate(relaxedModule) ? 1 : 0}`;
answer(0, new TextEncoder().encode(hello));
for (;;) {
  const [kind, size] = readWords(2);
  const act = requests[kind](size);
  try {
    answer(0, act());
  } catch (error) {
    answer(1, new TextEncoder().encode(String(error)));
  }
}
