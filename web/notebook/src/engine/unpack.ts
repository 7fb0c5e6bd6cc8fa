// Reading files piece by piece: ranges of a Blob, inflated where they are packed. A limit holds
// whatever a file claims about itself.

export class TooLarge extends Error {}

export async function collect(
  stream: ReadableStream<Uint8Array>,
  limit: number,
): Promise<Uint8Array> {
  const reader = stream.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > limit) {
      await reader.cancel();
      throw new TooLarge(`more than ${limit} bytes unpacked`);
    }
    parts.push(value);
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export async function inflate(
  data: Blob,
  format: "gzip" | "deflate-raw",
  limit: number,
): Promise<Uint8Array> {
  const stream = data.stream().pipeThrough(new DecompressionStream(format));
  return collect(stream, limit);
}

export async function readRange(
  file: Blob,
  range: { begin: number; size: number; inflated?: number },
): Promise<Uint8Array> {
  const part = file.slice(range.begin, range.begin + range.size);
  if (range.inflated !== undefined) return inflate(part, "deflate-raw", range.inflated);
  return new Uint8Array(await part.arrayBuffer());
}

export function joined(parts: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
