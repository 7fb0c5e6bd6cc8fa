// The engine as the page sees it: promises over a worker. A worker that dies, or that a person
// stops, is replaced by a fresh one with the next request; `generation` counts them, because what a
// worker kept (models, runs) goes with it. handle.ts makes such things again.
import { signal } from "@preact/signals";
import engineUrl from "../../data/engine.wasm?url";
import type { BundleInfo } from "./bundle_info.ts";
import type {
  AnswerOf,
  Ask,
  Dims,
  EngineError,
  FromWorker,
  ModelInfo,
  RequestName,
  ToWorker,
} from "./protocol.ts";

// The engine's own word: the input is wrong, or an op is not supported.
export class EngineRefusal extends Error {
  constructor(readonly error: EngineError) {
    super(error.message);
  }
}

// The worker is gone, and with it every request that waited for it.
type Reason = "cancelled" | "died" | "too slow";
export class EngineStopped extends Error {
  constructor(reason: Reason, doing: string, detail: string) {
    super(`${reason === "died" ? "the engine died" : "stopped"} while ${doing}: ${detail}`);
  }
}

interface Pending {
  doing: string;
  resolve(reply: { json: unknown; bytes: Uint8Array }): void;
  reject(error: Error): void;
}

const longest = 5 * 60 * 1000; // of one request, in milliseconds

// What runs, in words; null when nothing does.
export const busyWith = signal<string | null>(null);

class Engine {
  generation = 0;
  private worker: Worker | null = null;
  private pending = new Map<number, Pending>();
  private nextId = 1;
  private clock: ReturnType<typeof setTimeout> | undefined;

  async request<K extends RequestName>(
    name: K,
    ask: Ask<K>,
    bytes?: Uint8Array,
  ): Promise<AnswerOf<K>> {
    return (await this.requestBytes(name, ask, bytes)).json;
  }

  // The answer with the bytes beside it.
  async requestBytes<K extends RequestName>(
    name: K,
    ask: Ask<K>,
    bytes?: Uint8Array,
  ): Promise<{ json: AnswerOf<K>; bytes: Uint8Array }> {
    const id = this.nextId++;
    const message: ToWorker = { id, kind: "request", name, ask, ...(bytes ? { bytes } : {}) };
    const reply = await this.send(message, id, name);
    return { json: reply.json as AnswerOf<K>, bytes: reply.bytes };
  }

  // `entry`: of a zip that holds the model's JSON; `name` names both.
  async open(name: string, data: Blob, entry: string | null, dims: Dims): Promise<ModelInfo> {
    const id = this.nextId++;
    const message: ToWorker = { id, kind: "open", name, data, entry, dims };
    return (await this.send(message, id, `opening ${name}`)).json as ModelInfo;
  }

  async readBundle(name: string, data: Blob): Promise<BundleInfo> {
    const id = this.nextId++;
    const reply = await this.send({ id, kind: "bundle", name, data }, id, `opening ${name}`);
    return reply.json as BundleInfo;
  }

  cancel(): void {
    this.end("cancelled", "stopped by you; everything typed is kept");
  }

  private send(message: ToWorker, id: number, doing: string) {
    return new Promise<{ json: unknown; bytes: Uint8Array }>((resolve, reject) => {
      this.pending.set(id, { doing, resolve, reject });
      this.living().postMessage(message);
      this.watch();
    });
  }

  private living(): Worker {
    if (this.worker) return this.worker;
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = (event: MessageEvent<FromWorker>) => this.take(event.data);
    worker.onerror = (event) => this.end("died", event.message || "the worker did not start");
    worker.postMessage({
      kind: "load",
      url: new URL(engineUrl, document.baseURI).href,
    } satisfies ToWorker);
    this.worker = worker;
    return worker;
  }

  private take(message: FromWorker): void {
    if (message.kind === "died") return this.end("died", message.message);
    const pending = this.pending.get(message.id);
    this.pending.delete(message.id);
    this.watch();
    if (message.kind === "answer") pending?.resolve({ json: message.json, bytes: message.bytes });
    else pending?.reject(new EngineRefusal(message.error));
  }

  // The clock runs while something is asked and starts again with every answer.
  private watch(): void {
    clearTimeout(this.clock);
    const [first] = this.pending.values();
    busyWith.value = first?.doing ?? null;
    if (!first) return;
    this.clock = setTimeout(
      () => this.end("too slow", `no answer within ${longest / 60_000} minutes`),
      longest,
    );
  }

  private end(reason: Reason, detail: string): void {
    const pending = [...this.pending.values()];
    this.pending.clear();
    this.worker?.terminate();
    this.worker = null;
    ++this.generation;
    this.watch();
    for (const { doing, reject } of pending) reject(new EngineStopped(reason, doing, detail));
  }
}

export const engine = new Engine();
