// The keys of the notebook, as in Jupyter: commands while a cell has the focus and its text is not
// open. One table drives them and the help that `?` shows.
import { run, runAll } from "../notebook/evaluate.ts";
import * as notebook from "../notebook/notebook.ts";
import type { Cell } from "../notebook/cell.ts";
import { goOn } from "./cell_view.tsx";

export interface Key {
  keys: string;
  does: string;
  act(cell: Cell | null): void;
}

export interface Commands {
  help(): void;
  save(): void;
}

const place = (cell: Cell | null) => (cell ? notebook.indexOf(cell.id) : -1);

export function keyTable(commands: Commands): Key[] {
  return [
    {
      keys: "Enter",
      does: "edit the cell; Escape leaves its text",
      act: (cell) => cell && notebook.focus(cell.id, true),
    },
    {
      keys: "Shift-Enter",
      does: "run the cell and go to the next",
      act: (cell) => cell && (void run(cell), goOn(cell)),
    },
    { keys: "Ctrl-Enter", does: "run the cell", act: (cell) => cell && void run(cell) },
    {
      keys: "Alt-Enter",
      does: "run the cell and add one below",
      act: (cell) => cell && (void run(cell), notebook.add("markdown", place(cell) + 1)),
    },
    { keys: "ArrowUp", does: "the cell above (also K)", act: () => notebook.focusNeighbour(-1) },
    { keys: "k", does: "", act: () => notebook.focusNeighbour(-1) },
    { keys: "ArrowDown", does: "the cell below (also J)", act: () => notebook.focusNeighbour(1) },
    { keys: "j", does: "", act: () => notebook.focusNeighbour(1) },
    {
      keys: "a",
      does: "add a text cell above",
      act: (cell) => void notebook.add("markdown", Math.max(0, place(cell))),
    },
    {
      keys: "b",
      does: "add a text cell below",
      act: (cell) => void notebook.add("markdown", place(cell) + 1),
    },
    {
      keys: "m",
      does: "make it a text cell",
      act: (cell) => cell && notebook.becomes(cell.id, "markdown"),
    },
    {
      keys: "y",
      does: "make it a code cell, of the kind its call says",
      act: (cell) => cell && notebook.becomesCode(cell.id),
    },
    { keys: "d d", does: "delete the cell", act: (cell) => cell && notebook.remove(cell.id) },
    { keys: "z", does: "undo deleting, adding or moving", act: () => notebook.undo() },
    {
      keys: "Alt-ArrowUp",
      does: "move the cell up",
      act: (cell) => cell && notebook.move(cell.id, -1),
    },
    {
      keys: "Alt-ArrowDown",
      does: "move the cell down",
      act: (cell) => cell && notebook.move(cell.id, 1),
    },
    {
      keys: "o",
      does: "fold or unfold the cell",
      act: (cell) => cell && (cell.folded.value = !cell.folded.value),
    },
    { keys: "r", does: "run all cells", act: () => void runAll() },
    { keys: "Ctrl-s", does: "download the notebook", act: () => commands.save() },
    { keys: "?", does: "show this list", act: () => commands.help() },
  ];
}

function nameOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const control = event.ctrlKey || event.metaKey ? "Ctrl-" : "";
  const shift = event.shiftKey && event.key.length > 1 ? "Shift-" : "";
  return `${control}${event.altKey ? "Alt-" : ""}${shift}${key}`;
}

// True where keys belong to what has the focus: fields, the editor, lists, chips and canvases.
function isElsewhere(target: EventTarget | null, name: string): boolean {
  if (notebook.editing.value) return true; // also while the editor is on its way
  if (!(target instanceof Element)) return false;
  if (target.closest("input, textarea, select, .editor, dialog")) return true;
  const isControl = target.closest("button, a, summary, canvas, .chip, [role=tab]") !== null;
  return isControl && ["Enter", "ArrowUp", "ArrowDown"].includes(name);
}

export function listen(table: Key[]): () => void {
  let last = "";
  const handle = (event: KeyboardEvent) => {
    const name = nameOf(event);
    // The editor's own Escape comes first; this one is for the time before it is there.
    if (name === "Escape" && notebook.editing.value && !event.defaultPrevented)
      return notebook.focus(notebook.focused.value);
    if (event.defaultPrevented || (isElsewhere(event.target, name) && name !== "Ctrl-s")) return;
    const doubled = `${last} ${name}`;
    last = name;
    const key = table.find(({ keys }) => keys === name || keys === doubled);
    if (!key) return;
    last = "";
    event.preventDefault();
    key.act(notebook.cellOf(notebook.focused.value));
  };
  document.addEventListener("keydown", handle);
  return () => document.removeEventListener("keydown", handle);
}
