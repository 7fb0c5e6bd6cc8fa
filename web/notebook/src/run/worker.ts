// The worker that runs kernels: one module in a memory of its own. It does what it is told, one
// message after the other; times are taken here, next to the calls.

export type ToRunner =
  | { id: number; do: "load"; module: Uint8Array; pages: number }
  | { id: number; do: "grow"; pages: number }
  | { id: number; do: "write"; address: number; bytes: Uint8Array }
  | { id: number; do: "call"; name: string }
  | { id: number; do: "warm" }
  | { id: number; do: "block"; count: number }
  | { id: number; do: "steps"; count: number; rounds: number }
  | { id: number; do: "read"; address: number; size: number };

export interface Warm {
  count: number; // of runs that one block should have, so that the clock is fine enough for it
  settled: boolean;
}
export type FromRunner =
  | { id: number; ok: true; result: Warm | Uint8Array | number[][] | number | null }
  | { id: number; ok: false; message: string };

const page = 65536; // bytes

let memory: WebAssembly.Memory | null = null;
let exports: Record<string, () => void> = {};

function load(module: Uint8Array, pages: number): null {
  memory = null; // two of them may not fit
  exports = {};
  memory = new WebAssembly.Memory({ initial: pages });
  const compiled = new WebAssembly.Module(module as BufferSource);
  const instance = new WebAssembly.Instance(compiled, { env: { memory } });
  exports = instance.exports as unknown as Record<string, () => void>;
  return null;
}

function grow(pages: number): null {
  if (!memory) throw new Error("no module is loaded");
  const missing = pages - memory.buffer.byteLength / page;
  if (missing > 0) memory.grow(missing);
  return null;
}

function view(address: number, size: number): Uint8Array<ArrayBuffer> {
  if (!memory) throw new Error("no module is loaded");
  return new Uint8Array(memory.buffer as ArrayBuffer, address, size);
}

function timed(name: string): number {
  const call = exports[name];
  if (!call) throw new Error(`the module has no function '${name}'`);
  const start = performance.now();
  call();
  return performance.now() - start;
}

// As long as it takes to time `count` runs that are too short for the clock, as one.
function block(count: number): number {
  const call = exports["run"];
  if (!call) throw new Error("the module has no function 'run'");
  const start = performance.now();
  for (let i = 0; i < count; ++i) call();
  return (performance.now() - start) / count;
}

const pause = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));

// The browser compiles twice: quickly at first, well for what is called often, and it changes over
// between calls. So: many short calls, a pause, and then blocks until three in a row agree.
async function warmUp(): Promise<Warm> {
  const begin = performance.now();
  let calls = 0;
  while (calls < 200 && performance.now() - begin < 400) {
    timed("run");
    ++calls;
  }
  await pause(5);
  const one = Math.max(timed("run"), 1e-3);
  const count = Math.max(1, Math.min(1000, Math.ceil(2 / one)));
  const last: number[] = [];
  while (performance.now() - begin < 3000) {
    last.push(block(count));
    const three = last.slice(-3);
    if (three.length === 3 && Math.max(...three) <= 1.03 * Math.min(...three))
      return { count, settled: true };
    await pause(0);
  }
  return { count, settled: false };
}

// Milliseconds of each step in each round; the steps run in their order, as in a whole run.
async function steps(count: number, rounds: number): Promise<number[][]> {
  const times = Array.from({ length: count }, () => [] as number[]);
  for (let i = 0; i < rounds; ++i) {
    times.forEach((samples, k) => samples.push(timed(`step${k}`)));
    if (i % 16 === 15) await pause(0);
  }
  return times;
}

async function act(message: ToRunner): Promise<Warm | Uint8Array | number[][] | number | null> {
  switch (message.do) {
    case "load":
      return load(message.module, message.pages);
    case "grow":
      return grow(message.pages);
    case "write":
      view(message.address, message.bytes.length).set(message.bytes);
      return null;
    case "call":
      return timed(message.name);
    case "warm":
      return warmUp();
    case "block":
      return block(message.count);
    case "steps":
      return steps(message.count, message.rounds);
    case "read":
      return view(message.address, message.size).slice();
  }
}

function why(error: unknown): string {
  if (error instanceof WebAssembly.RuntimeError) return `a kernel trapped: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}

let queue: Promise<void> = Promise.resolve();
self.onmessage = (event: MessageEvent<ToRunner>) => {
  queue = queue.then(async () => {
    const { id } = event.data;
    let answer: FromRunner;
    try {
      answer = { id, ok: true, result: await act(event.data) };
    } catch (error) {
      answer = { id, ok: false, message: why(error) };
    }
    self.postMessage(answer);
  });
};
