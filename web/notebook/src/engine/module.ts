// engine.wasm behind its C ABI: JSON and bytes in, JSON and bytes out. Runs in the engine's worker.

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  lathe_engine_version(): number;
  lathe_engine_allocate(size: number): number;
  lathe_engine_release(at: number): void;
  lathe_engine_request(text: number, size: number, bytes: number, numBytes: number): number;
}

export interface Reply {
  json: unknown;
  bytes: Uint8Array<ArrayBuffer>;
}

const version = 1;

// The engine could not take what it was to be given, and goes on as if it had not been asked.
export class NoRoom extends Error {}

export class EngineModule {
  private constructor(private readonly exports: Exports) {}

  static async load(url: string): Promise<EngineModule> {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
    let memory: WebAssembly.Memory | null = null;
    const imports = {
      env: { emscripten_notify_memory_growth: () => undefined },
      wasi_snapshot_preview1: {
        proc_exit: (code: number) => {
          throw new Error(`the engine exited with ${code}`);
        },
        environ_get: () => 0,
        environ_sizes_get: (count: number, size: number) => {
          if (!memory) return 1;
          new DataView(memory.buffer).setUint32(count, 0, true);
          new DataView(memory.buffer).setUint32(size, 0, true);
          return 0;
        },
        clock_time_get: (_clock: number, _precision: bigint, out: number) => {
          if (!memory) return 1;
          const nanoseconds = BigInt(Math.round(performance.now() * 1e6));
          new DataView(memory.buffer).setBigUint64(out, nanoseconds, true);
          return 0;
        },
      },
    };
    const bytes = await response.arrayBuffer();
    const { instance } = await WebAssembly.instantiate(bytes, imports);
    const exports = instance.exports as unknown as Exports;
    memory = exports.memory;
    exports._initialize();
    const got = exports.lathe_engine_version();
    if (got !== version) throw new Error(`the engine speaks version ${got}, the page ${version}`);
    return new EngineModule(exports);
  }

  // The answer's bytes are a copy. A trap inside the engine throws; the engine is lost then, which
  // it is not after NoRoom.
  request(ask: object, bytes: Uint8Array = new Uint8Array()): Reply {
    const { exports } = this;
    const bytesAt = this.put(bytes);
    const text = new TextEncoder().encode(JSON.stringify(ask));
    const textAt = this.put(text);
    const answer = exports.lathe_engine_request(textAt, text.length, bytesAt, bytes.length);
    exports.lathe_engine_release(textAt);
    exports.lathe_engine_release(bytesAt);
    const { buffer } = exports.memory;
    const [at = 0, size = 0, outAt = 0, outSize = 0] = new Uint32Array(buffer, answer, 4);
    const answered = new TextDecoder().decode(new Uint8Array(buffer, at, size));
    const out = new Uint8Array(buffer, outAt, outSize).slice();
    return { json: JSON.parse(answered) as unknown, bytes: out };
  }

  private put(bytes: Uint8Array): number {
    const at = this.exports.lathe_engine_allocate(bytes.length);
    if (at === 0) throw new NoRoom(`the engine has no room for ${bytes.length} bytes`);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }
}
