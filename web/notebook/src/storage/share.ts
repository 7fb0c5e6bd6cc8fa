// A notebook in a link: #s= and the notebook, deflated, in base64url. Only texts travel, so the
// models must be ones that come with the page. Old links open forever: the version stands in front.
import { makeCell, type Cell, type Kind } from "../notebook/cell.ts";
import { understand } from "../source/cell_code.ts";
import { collect } from "../engine/unpack.ts";

const prefix = "#s=v1.";
const mostLetters = 16_000;
const mostBytes = 1 << 20; // unpacked
const kinds: readonly string[] = [
  "model",
  "passes",
  "bench",
  "bundle",
  "markdown",
] satisfies Kind[];

export class BadLink extends Error {}

type Packed = [kind: string, source: string][];

function toBase64Url(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const decoded = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(decoded, (c) => c.charCodeAt(0));
}

// The names of files that a reader of the link would not have.
export function foreignFiles(cells: readonly Cell[], isBuiltIn: (name: string) => boolean) {
  return cells.flatMap((cell) => {
    const understood = understand(cell.source.value);
    if (cell.kind === "markdown" || !understood.ok || !("file" in understood.code)) return [];
    return isBuiltIn(understood.code.file) ? [] : [understood.code.file];
  });
}

const pack = (cells: readonly Cell[]): Packed =>
  cells.filter(({ kind }) => kind !== "foreign").map(({ kind, source }) => [kind, source.value]);

// Whether both would have the same link.
export const saysTheSame = (a: readonly Cell[], b: readonly Cell[]) =>
  JSON.stringify(pack(a)) === JSON.stringify(pack(b));

export async function linkOf(cells: readonly Cell[]): Promise<string> {
  const packed = pack(cells);
  const stream = new Blob([JSON.stringify(packed)])
    .stream()
    .pipeThrough(new CompressionStream("deflate-raw"));
  const text = prefix + toBase64Url(await collect(stream, mostBytes));
  if (text.length > mostLetters)
    throw new BadLink(
      `the link would have ${text.length} letters, at most ${mostLetters} travel well; ` +
        "download the notebook instead",
    );
  return text;
}

let inBar: string | null = null; // the notebook whose link stands in the address bar

export function linkShown(snapshot: string): void {
  inBar = snapshot;
}

export const isLinkShown = () => inBar !== null;

// A reload must bring back what is typed, not what the link held before.
export function dropStaleLink(snapshot: string): void {
  if (inBar === null || inBar === snapshot) return;
  inBar = null;
  history.replaceState(null, "", location.pathname);
}

export async function readLink(hash: string): Promise<Cell[] | null> {
  if (!hash.startsWith("#s=")) return null;
  if (!hash.startsWith(prefix)) throw new BadLink("this link is of a version that is not known");
  let json: unknown;
  try {
    const stream = new Blob([fromBase64Url(hash.slice(prefix.length))])
      .stream()
      .pipeThrough(new DecompressionStream("deflate-raw"));
    json = JSON.parse(new TextDecoder().decode(await collect(stream, mostBytes)));
  } catch {
    throw new BadLink("this link is damaged or was cut off");
  }
  const isPacked = (one: unknown): one is [Kind, string] =>
    Array.isArray(one) && kinds.includes(one[0] as string) && typeof one[1] === "string";
  if (!Array.isArray(json) || !json.every(isPacked))
    throw new BadLink("this link holds no notebook");
  return json.map(([kind, source]) => makeCell(kind, source));
}
