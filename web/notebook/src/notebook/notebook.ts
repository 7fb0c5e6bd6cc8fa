// The list of cells and what can be done to it. Every change of the list can be undone.
import { batch, computed, signal } from "@preact/signals";
import { calls, type CallName } from "../source/cell_code.ts";
import { isCode, makeCell, type Cell, type Kind } from "./cell.ts";

export const cells = signal<readonly Cell[]>([]);
export const title = signal("untitled");
export const focused = signal<string | null>(null); // a cell's id
export const editing = signal(false); // whether the focused cell's text is open

const undone = signal<readonly (readonly Cell[])[]>([]);
export const canUndo = computed(() => undone.value.length > 0);
const mostUndos = 100;

// What a change of the list tells those who listen (a screen reader, a status line).
export const said = signal("");

export function say(text: string): void {
  said.value = text;
}

function change(next: readonly Cell[], what: string): void {
  batch(() => {
    undone.value = [...undone.value, cells.value].slice(-mostUndos);
    cells.value = next;
    say(what);
  });
}

export function undo(): void {
  const last = undone.value.at(-1);
  if (!last) return say("nothing to undo");
  batch(() => {
    undone.value = undone.value.slice(0, -1);
    cells.value = last;
    say("undone");
  });
}

export function load(list: readonly Cell[], name: string): void {
  batch(() => {
    cells.value = list;
    title.value = name;
    undone.value = [];
    focused.value = list[0]?.id ?? null;
    editing.value = false;
  });
}

export const indexOf = (id: string | null) => cells.value.findIndex((cell) => cell.id === id);
export const cellOf = (id: string | null) => cells.value.find((cell) => cell.id === id) ?? null;

export function focus(id: string | null, isEditing = false): void {
  batch(() => {
    focused.value = id;
    editing.value = isEditing;
  });
}

export function focusNeighbour(step: -1 | 1): void {
  const next = cells.value[indexOf(focused.value) + step];
  if (next) focus(next.id);
}

export function insert(cell: Cell, index: number): Cell {
  const list = [...cells.value];
  list.splice(index, 0, cell);
  change(list, `${cell.kind} cell added`);
  return cell;
}

export function remove(id: string): void {
  const index = indexOf(id);
  if (index < 0) return;
  const list = cells.value.filter((cell) => cell.id !== id);
  change(list, `${cells.value[index]?.kind} cell deleted; Z brings it back`);
  focus(list[Math.min(index, list.length - 1)]?.id ?? null);
}

export function move(id: string, step: -1 | 1): void {
  const from = indexOf(id);
  const to = from + step;
  if (from < 0 || to < 0 || to >= cells.value.length) return;
  const list = [...cells.value];
  const [cell] = list.splice(from, 1);
  if (!cell) return;
  list.splice(to, 0, cell);
  change(list, `cell moved to place ${to + 1} of ${list.length}`);
}

// Another kind of cell with the same text, in the same place.
export function becomes(id: string, kind: Kind): void {
  const cell = cellOf(id);
  if (!cell || cell.kind === kind || cell.kind === "foreign") return;
  const list = cells.value.map((one) =>
    one.id === id ? makeCell(kind, one.source.value, one.id) : one,
  );
  change(list, `now a ${kind} cell`);
}

// The kind of code cell that its call names; a passes cell when it names none.
export function becomesCode(id: string): void {
  const text = cellOf(id)?.source.value ?? "";
  const call = /(?:^|=)\s*(import|passes|bench|bundle)\s*\(/.exec(text)?.[1];
  becomes(id, call ? calls[call as CallName] : "passes");
}

export function freeName(stem: string): string {
  const taken = cells.value.map((cell) => /^\s*(\w+)\s*=/.exec(cell.source.value)?.[1]);
  if (!taken.includes(stem)) return stem;
  for (let i = 2; ; ++i) if (!taken.includes(`${stem}_${i}`)) return `${stem}_${i}`;
}

// The nearest name above that a cell of this kind could use.
function nameAbove(index: number, kind: Kind): string | null {
  const above = cells.value.slice(0, index).reverse();
  const cell = above.find((one) => one.kind === kind);
  return cell ? (/^\s*(\w+)\s*=/.exec(cell.source.value)?.[1] ?? null) : null;
}

// What a new cell starts with.
export function starter(kind: Kind, index: number): string {
  if (kind === "model") return `${freeName("block")} = import("attention_block")`;
  if (kind === "passes")
    return `${freeName("fast")} = passes(${nameAbove(index, "model") ?? "block"}, "default")`;
  if (kind === "bench") return `bench(${nameAbove(index, "passes") ?? "fast"}, repeats=20)`;
  return "";
}

export function add(kind: Kind, index: number): Cell {
  const cell = insert(makeCell(kind, starter(kind, index)), index);
  focus(cell.id, true);
  return cell;
}

export const codeCells = computed(() => cells.value.filter(isCode));
