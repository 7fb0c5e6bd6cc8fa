// Notebooks as .ipynb, nbformat 4.5: cell ids, kinds in metadata.lathe, outputs as MIME bundles
// whose text and HTML other programs show. Cells that are not ours are kept as they stood.
import { makeCell, newId, shownValue, type Cell, type CodeKind } from "../notebook/cell.ts";
import { outputsOf } from "./outputs.ts";
import { readBench } from "./read_bench.ts";

interface NotebookFile {
  nbformat: number;
  nbformat_minor: number;
  metadata: Record<string, unknown>;
  cells: unknown[];
}

export class BadNotebook extends Error {}

const codeKinds: readonly string[] = ["model", "passes", "bench", "bundle"] satisfies CodeKind[];
const idRule = /^[A-Za-z0-9_-]{1,64}$/;

function asObject(value: unknown): Record<string, unknown> | null {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : null;
}

// nbformat allows one string, or a list of lines that keep their ends.
function textOf(source: unknown): string | null {
  if (typeof source === "string") return source;
  const isLines = Array.isArray(source) && source.every((line) => typeof line === "string");
  return isLines ? source.join("") : null;
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.split(/(?<=\n)/);
}

function kindOf(raw: Record<string, unknown>): "markdown" | CodeKind | null {
  if (raw["cell_type"] === "markdown") return "markdown";
  const lathe = asObject(asObject(raw["metadata"])?.["lathe"]);
  const kind = lathe?.["kind"];
  const isOurs = raw["cell_type"] === "code" && typeof kind === "string";
  return isOurs && codeKinds.includes(kind) ? (kind as CodeKind) : null;
}

function readCell(raw: unknown, place: number, taken: Set<string>): Cell {
  const object = asObject(raw);
  const source = textOf(object?.["source"]);
  if (!object || source === null)
    throw new BadNotebook(`cell ${place} has no text, expected 'source'`);
  const given = object["id"];
  const isUsable = typeof given === "string" && idRule.test(given) && !taken.has(given);
  const id = isUsable ? given : newId();
  taken.add(id);
  const kind = kindOf(object);
  const cell = makeCell(kind ?? "foreign", source, id);
  if (kind === null || kind === "markdown") cell.foreign = raw;
  const lathe = asObject(asObject(object["metadata"])?.["lathe"]);
  if (lathe?.["folded"] === true) cell.folded.value = true;
  const result = cell.kind === "foreign" ? null : readBench(object["outputs"]);
  if (result) cell.outcome.value = { state: "kept", value: { kind: "bench", result }, source };
  return cell;
}

export function readNotebook(text: string): Cell[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new BadNotebook(`this is not JSON: ${(error as Error).message}`);
  }
  const file = asObject(json);
  if (!file || !Array.isArray(file["cells"]))
    throw new BadNotebook("this JSON is no notebook, expected an object with 'cells'");
  if (file["nbformat"] !== 4)
    throw new BadNotebook(`the notebook is of format ${String(file["nbformat"])}, expected 4`);
  const taken = new Set<string>();
  return file["cells"].map((cell, i) => readCell(cell, i + 1, taken));
}

// Which outputs are written: figures are those that another run would not bring back.
export type Outputs = "all" | "figures";

function writeCell(cell: Cell, outputs: Outputs): unknown {
  if (cell.kind === "foreign") return { ...asObject(cell.foreign), id: cell.id };
  const source = linesOf(cell.source.value);
  const kept = asObject(asObject(cell.foreign)?.["metadata"]) ?? {};
  if (cell.kind === "markdown") {
    const lathe = cell.folded.value ? { lathe: { folded: true } } : {};
    const { lathe: _, ...rest } = kept;
    const metadata = { ...rest, ...lathe };
    const attachments = asObject(cell.foreign)?.["attachments"];
    const extra = attachments === undefined ? {} : { attachments };
    return { cell_type: "markdown", id: cell.id, metadata, ...extra, source };
  }
  const lathe = { kind: cell.kind, ...(cell.folded.value ? { folded: true } : {}) };
  const isWritten = outputs === "all" || shownValue(cell)?.kind === "bench";
  return {
    cell_type: "code",
    execution_count: null,
    id: cell.id,
    metadata: { lathe },
    outputs: isWritten ? outputsOf(cell) : [],
    source,
  };
}

export function writeNotebook(cells: readonly Cell[], outputs: Outputs): string {
  const file: NotebookFile = {
    cells: cells.map((cell) => writeCell(cell, outputs)) as unknown[],
    metadata: {
      kernelspec: { display_name: "Lathe", language: "lathe", name: "lathe" },
      language_info: { file_extension: ".lathe", name: "lathe" },
    },
    nbformat: 4,
    nbformat_minor: 5,
  };
  return `${JSON.stringify(file, null, 1)}\n`;
}
