// Models and runs outlive the worker that holds them: a handle remembers how it was made, and makes
// it again in a fresh worker before it is used there.
import { engine } from "./engine.ts";
import type { Ask, AnswerOf, CompileInfo, ModelInfo, RequestName } from "./protocol.ts";

export class Handle {
  private made: { id: Promise<number>; generation: number } | null = null;

  constructor(private readonly make: () => Promise<number>) {}

  id(): Promise<number> {
    if (!this.made || this.made.generation !== engine.generation) {
      const id = this.make();
      id.catch(() => (this.made = null));
      this.made = { id, generation: engine.generation };
    }
    return this.made.id;
  }

  // The number, when the living worker knows one.
  async current(): Promise<number | null> {
    if (!this.made || this.made.generation !== engine.generation) return null;
    return this.made.id.catch(() => null);
  }
}

export interface ModelSource {
  name: string; // of a file, with its ending
  read(): Promise<Blob>;
  entry: string | null; // of that file, a zip, which holds the model's JSON
  dims: Record<string, number>;
}

// Equal for models of the same graph at the same sizes.
export const identityOf = ({ hash, dims }: ModelInfo) =>
  [hash, ...Object.entries(dims).map(([symbol, { value }]) => `${symbol}=${value}`)].join(" ");

export class OpenModel {
  private constructor(
    readonly source: ModelSource,
    readonly handle: Handle,
    readonly info: ModelInfo,
  ) {}

  static async open(source: ModelSource): Promise<OpenModel> {
    let info: ModelInfo | null = null;
    const handle = new Handle(async () => {
      info = await engine.open(source.name, await source.read(), source.entry, source.dims);
      return info.model;
    });
    await handle.id();
    if (!info) throw new Error("a model was opened without an answer");
    return new OpenModel(source, handle, info);
  }

  async close(): Promise<void> {
    const model = await this.handle.current();
    if (model !== null) await engine.request("close", { model });
  }
}

export class Run {
  private constructor(
    readonly model: OpenModel,
    readonly handle: Handle,
    readonly info: CompileInfo,
  ) {}

  static async compile(
    model: OpenModel,
    passes: string,
    isa?: string,
    force: string[] = [],
  ): Promise<Run> {
    let info: CompileInfo | null = null;
    const handle = new Handle(async () => {
      const ask: Ask<"compile"> = { model: await model.handle.id(), passes };
      if (isa) ask.isa = isa;
      if (force.length > 0) ask.force = force;
      info = await engine.request("compile", ask);
      return info.run;
    });
    await handle.id();
    if (!info) throw new Error("a pipeline ran without an answer");
    return new Run(model, handle, info);
  }

  // A request about this run.
  async ask<K extends RequestName>(
    name: K,
    rest: Omit<Ask<K>, "run">,
    bytes?: Uint8Array,
  ): Promise<AnswerOf<K>> {
    const run = await this.handle.id();
    return engine.request(name, { ...rest, run } as unknown as Ask<K>, bytes);
  }

  async close(): Promise<void> {
    const run = await this.handle.current();
    if (run !== null) await engine.request("close", { run });
  }
}
