// Arrays of an .npz that ./lathe wrote: a zip64 of stored .npy files, row-major.

const types = { "<f4": Float32Array, "<f8": Float64Array, "<i8": BigInt64Array };

function readArray(file) {
  if (file.toString("latin1", 1, 6) !== "NUMPY") throw new Error("not an .npy");
  const size = file.readUInt16LE(8);
  const head = file.toString("latin1", 10, 10 + size);
  const type = /'descr': '([^']+)'/.exec(head)?.[1];
  const Type = types[type];
  if (!Type || !/'fortran_order': False/.test(head)) throw new Error(`an array of ${head}`);
  const shape = [...(/'shape': \(([^)]*)\)/.exec(head)?.[1] ?? "").matchAll(/\d+/g)].map(Number);
  const begin = file.byteOffset + 10 + size;
  return { shape, values: new Type(file.buffer.slice(begin, file.byteOffset + file.length)) };
}

// By their order in the file: ./lathe calls them 0, 1, 2, ...
export function readNpz(file) {
  const arrays = [];
  const long = (at) => Number(file.readBigUInt64LE(at));
  const short = (at) => file.readUInt16LE(at);
  const end = file.lastIndexOf("PK\x06\x06");
  let at = long(end + 48);
  for (let i = 0; i < long(end + 32); ++i) {
    if (short(at + 10) !== 0) throw new Error("expected a stored entry");
    const wide = at + 46 + short(at + 28) + 4; // sizes and place, behind the name
    const [size, local] = [long(wide), long(wide + 16)];
    const begin = local + 30 + short(local + 26) + short(local + 28);
    arrays.push(readArray(file.subarray(begin, begin + size)));
    at += 46 + short(at + 28) + short(at + 30) + short(at + 32);
  }
  return arrays;
}

// How far `got` is from `want`, in tolerances of f32: 1e-4 of the value and of the RMS of all. What
// is not finite must be equal.
export function distance(got, want) {
  if (got.length !== want.length) return Infinity;
  let squares = 0;
  for (const value of want) squares += Number.isFinite(value) ? value * value : 0;
  const rms = Math.sqrt(squares / Math.max(1, want.length));
  let worst = 0;
  for (let i = 0; i < want.length; ++i) {
    if (Object.is(got[i], want[i]) || got[i] === want[i]) continue;
    const share = Math.abs(got[i] - want[i]) / (1e-4 * (Math.abs(want[i]) + rms));
    if (!(share <= worst)) worst = Number.isNaN(share) ? Infinity : share;
  }
  return worst;
}
