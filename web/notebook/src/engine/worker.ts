// The worker that owns the engine. It answers one message after the other; when the engine traps it
// says so and answers no more, and the page starts another worker.
import { EngineModule, NoRoom, type Reply } from "./module.ts";
import type { EngineError, FromWorker, NeedRanges, ToWorker } from "./protocol.ts";
import { inflate, joined, readRange, TooLarge } from "./unpack.ts";

type OpenMessage = Extract<ToWorker, { kind: "open" }>;

const limit = 1 << 30; // of one model's JSON, unpacked

let engine: Promise<EngineModule> = Promise.reject(new Error("no engine was loaded"));
engine.catch(() => undefined);
let queue: Promise<void> = Promise.resolve();

function send(message: FromWorker): void {
  const transfer = message.kind === "answer" ? [message.bytes.buffer as ArrayBuffer] : [];
  self.postMessage(message, { transfer });
}

class Refused extends Error {
  constructor(readonly error: EngineError) {
    super(error.message);
  }
}

function badFile(name: string, message: string): Refused {
  return new Refused({ code: "bad-file", message, text: `${name}: error[bad-file]: ${message}` });
}

function errorIn(json: unknown): EngineError | undefined {
  return (json as { error?: EngineError }).error;
}

async function open(message: OpenMessage): Promise<Reply> {
  const { name, data, entry, dims } = message;
  const module = await engine;
  if (entry !== null) return handOver(module, "open", name, data, { entry, dims });
  if (name.endsWith(".pt2")) return handOver(module, "open", name, data, { dims });
  let bytes: Uint8Array;
  try {
    const isPacked = name.endsWith(".gz");
    if (!isPacked && data.size > limit) throw new TooLarge(`more than ${limit} bytes`);
    bytes = isPacked
      ? await inflate(data, "gzip", limit)
      : new Uint8Array(await data.arrayBuffer());
  } catch (error) {
    if (error instanceof TooLarge) throw badFile(name, error.message);
    throw badFile(name, "the gzip data is damaged or ends early");
  }
  return module.request({ do: "open", name: name.replace(/\.gz$/, ""), dims }, bytes);
}

// Only the ranges that the engine asks for are read; weights stay in the file.
async function handOver(
  module: EngineModule,
  request: "open" | "bundle",
  name: string,
  data: Blob,
  options: object,
): Promise<Reply> {
  let reply = module.request({ do: request, name, size: data.size, ...options });
  for (;;) {
    const { file, need } = reply.json as Partial<NeedRanges>;
    if (errorIn(reply.json) || file === undefined || !need) return reply;
    let bytes: Uint8Array;
    try {
      bytes = joined(await Promise.all(need.map((range) => readRange(data, range))));
    } catch {
      module.request({ do: "close", file });
      throw badFile(name, "a packed part of the archive is damaged or ends early");
    }
    reply = module.request({ do: request, file, ranges: need, ...options }, bytes);
  }
}

async function replyTo(message: Exclude<ToWorker, { kind: "load" }>): Promise<Reply> {
  if (message.kind === "open") return open(message);
  const module = await engine;
  if (message.kind === "bundle") return handOver(module, "bundle", message.name, message.data, {});
  return module.request({ do: message.name, ...message.ask }, message.bytes);
}

async function answer(message: ToWorker): Promise<void> {
  if (message.kind === "load") {
    engine = EngineModule.load(message.url);
    engine.catch(() => undefined); // whoever asks next hears of it
    return;
  }
  const { id } = message;
  try {
    const reply = await replyTo(message);
    const error = errorIn(reply.json);
    if (error) return send({ id, kind: "refused", error });
    send({ id, kind: "answer", json: reply.json, bytes: reply.bytes });
  } catch (error) {
    if (error instanceof Refused) return send({ id, kind: "refused", error: error.error });
    if (error instanceof NoRoom) {
      const { message: text } = error;
      return send({ id, kind: "refused", error: { code: "too-large", message: text, text } });
    }
    send({ id, kind: "died", message: error instanceof Error ? error.message : String(error) });
  }
}

self.onmessage = (event: MessageEvent<ToWorker>) => {
  queue = queue.then(() => answer(event.data));
};
