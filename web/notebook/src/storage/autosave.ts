// Keeps what is typed: a second after the last change, and at once when the page is hidden.
import { effect, signal } from "@preact/signals";
import { cells, title } from "../notebook/notebook.ts";
import { readNotebook, writeNotebook } from "./ipynb.ts";
import { dropStaleLink } from "./share.ts";
import { storedNotebook, storeNotebook, type Slot } from "./store.ts";

export const savedAt = signal<Date | null>(null);

const delay = 1000; // milliseconds

export function snapshot(): string {
  return JSON.stringify({ title: title.value, notebook: writeNotebook(cells.value, "figures") });
}

// Another notebook is about to take the place of this one.
export async function keepPrevious(): Promise<void> {
  if (cells.value.length > 0) await storeNotebook("previous", snapshot());
}

export function startAutosave(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waiting: string | null = null;
  const saveNow = async () => {
    clearTimeout(timer);
    const text = waiting;
    waiting = null;
    if (text === null) return;
    await storeNotebook("current", text);
    savedAt.value = new Date();
  };
  let last: string | null = null; // at first, what was just loaded
  effect(() => {
    const text = snapshot();
    dropStaleLink(text);
    document.title = `${title.value} · Lathe`;
    const isNew = last !== null && text !== last;
    last = text;
    if (!isNew) return;
    waiting = text;
    clearTimeout(timer);
    timer = setTimeout(() => void saveNow(), delay);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") void saveNow();
  });
}

export async function restored(slot: Slot) {
  const text = await storedNotebook(slot);
  if (text === null) return null;
  try {
    const { title: name, notebook } = JSON.parse(text) as { title: string; notebook: string };
    return { title: name, cells: readNotebook(notebook) };
  } catch {
    return null; // nothing of ours, or from a version that wrote otherwise
  }
}
