// The worker that runs kernels: one module in a memory of its own. It does what it is told, one
// message after the other; times are taken here, next to the calls.

export type ToRunner =
  | { id: number; do: "load"; module: Uint8Array; pages: number }
  | { id: number; do: "write"; address: number; bytes: Uint8Array }
  | { id: number; do: "call"; name: string }
  | { id: number; do: "measure"; repeats: number; steps: number }
  | { id: number; do: "read"; address: number; size: number };

export interface Measured {
  runs: number[]; // milliseconds of whole runs
  steps: number[][]; // by step, of each repeat
  settled: boolean;
}
export type FromRunner =
  | { id: number; ok: true; result: Measured | Uint8Array | number | null }
  | { id: number; ok: false; message: string };

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
async function warmUp(): Promise<{ count: number; settled: boolean }> {
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

async function measure(repeats: number, steps: number): Promise<Measured> {
  const { count, settled } = await warmUp();
  const runs: number[] = [];
  for (let i = 0; i < repeats; ++i) {
    runs.push(block(count));
    if (i % 8 === 7) await pause(0);
  }
  const times = Array.from({ length: steps }, () => [] as number[]);
  const rounds = Math.max(repeats, Math.min(count * 4, 2000));
  for (let i = 0; i < rounds; ++i)
    for (let k = 0; k < steps; ++k) times[k]?.push(timed(`step${k}`));
  return { runs, steps: times, settled };
}

async function act(message: ToRunner): Promise<Measured | Uint8Array | number | null> {
  switch (message.do) {
    case "load":
      return load(message.module, message.pages);
    case "write":
      view(message.address, message.bytes.length).set(message.bytes);
      return null;
    case "call":
      return timed(message.name);
    case "measure":
      return measure(message.repeats, message.steps);
    case "read":
      return view(message.address, message.size).slice();
  }
}

let queue: Promise<void> = Promise.resolve();
self.onmessage = (event: MessageEvent<ToRunner>) => {
  queue = queue.then(async () => {
    const { id } = event.data;
    let answer: FromRunner;
    try {
      answer = { id, ok: true, result: await act(event.data) };
    } catch (error) {
      answer = { id, ok: false, message: error instanceof Error ? error.message : String(error) };
    }
    self.postMessage(answer);
  });
};
