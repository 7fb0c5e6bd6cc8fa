// The kernels' worker as promises: one for each program of a bench, which starts and ends them.
import { EngineStopped } from "../engine/engine.ts";
import type { FromRunner, ToRunner, Warm } from "./worker.ts";

type Order = ToRunner extends infer T ? (T extends ToRunner ? Omit<T, "id"> : never) : never;

export class Runner {
  private static readonly living = new Set<Runner>();

  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private readonly pending = new Map<
    number,
    { resolve(result: unknown): void; reject(error: Error): void }
  >();
  private nextId = 1;
  private ended: Error | null = null;

  constructor() {
    Runner.living.add(this);
    this.worker.onmessage = (event: MessageEvent<FromRunner>) => {
      const answer = event.data;
      const pending = this.pending.get(answer.id);
      this.pending.delete(answer.id);
      if (answer.ok) pending?.resolve(answer.result);
      else pending?.reject(new Error(answer.message));
    };
    this.worker.onerror = (event) =>
      this.end(new EngineStopped("died", "running kernels", event.message || "out of memory"));
  }

  // What a person's cancel does to kernels that run.
  static cancel(): void {
    const detail = "stopped by you; everything typed is kept";
    const error = new EngineStopped("cancelled", "running kernels", detail);
    for (const runner of Runner.living) runner.end(error);
  }

  load(module: Uint8Array, pages: number) {
    return this.send<null>({ do: "load", module, pages });
  }
  // To at least as many pages.
  grow(pages: number) {
    return this.send<null>({ do: "grow", pages });
  }
  write(address: number, bytes: Uint8Array) {
    return this.send<null>({ do: "write", address, bytes });
  }
  call(name: string) {
    return this.send<number>({ do: "call", name });
  }
  warm() {
    return this.send<Warm>({ do: "warm" });
  }
  // Milliseconds of one run.
  block(count: number) {
    return this.send<number>({ do: "block", count });
  }
  steps(count: number, rounds: number) {
    return this.send<number[][]>({ do: "steps", count, rounds });
  }
  read(address: number, size: number) {
    return this.send<Uint8Array>({ do: "read", address, size });
  }

  end(error: Error = new EngineStopped("cancelled", "running kernels", "stopped")): void {
    this.ended ??= error;
    this.worker.terminate();
    for (const { reject } of this.pending.values()) reject(error);
    this.pending.clear();
    Runner.living.delete(this);
  }

  private send<T>(order: Order): Promise<T> {
    if (this.ended) return Promise.reject(this.ended);
    const id = this.nextId++;
    return new Promise<T>((resolve, reject) => {
      this.pending.set(id, { resolve: (result) => resolve(result as T), reject });
      this.worker.postMessage({ ...order, id });
    });
  }
}
