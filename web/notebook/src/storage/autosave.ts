// Keeps what is typed: a second after the last change, and at once when the page is hidden.
import { effect, signal } from "@preact/signals";
import { cells, title } from "../notebook/notebook.ts";
import { readNotebook, writeNotebook } from "./ipynb.ts";
import { storedNotebook, storeNotebook } from "./store.ts";

export const savedAt = signal<Date | null>(null);

const delay = 1000; // milliseconds

export function startAutosave(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waiting: string | null = null;
  const saveNow = async () => {
    clearTimeout(timer);
    const text = waiting;
    waiting = null;
    if (text === null) return;
    await storeNotebook(text);
    savedAt.value = new Date();
  };
  let isFirst = true;
  effect(() => {
    const text = JSON.stringify({
      title: title.value,
      notebook: writeNotebook(cells.value, false),
    });
    if (isFirst) {
      isFirst = false; // what was just loaded
      return;
    }
    waiting = text;
    clearTimeout(timer);
    timer = setTimeout(() => void saveNow(), delay);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") void saveNow();
  });
}

export async function restored() {
  const text = await storedNotebook();
  if (text === null) return null;
  try {
    const { title: name, notebook } = JSON.parse(text) as { title: string; notebook: string };
    return { title: name, cells: readNotebook(notebook) };
  } catch {
    return null; // nothing of ours, or from a version that wrote otherwise
  }
}
