// Keeps what is typed: a second after the last change, and at once when the page is hidden.
import { effect, signal, untracked } from "@preact/signals";
import { cells, title } from "../notebook/notebook.ts";
import { readNotebook, writeNotebook } from "./ipynb.ts";
import { dropStaleLink, isLinkShown } from "./share.ts";
import { storedNotebook, storeNotebook, type Slot } from "./store.ts";
import { isKeeper } from "./tabs.ts";
import { isUnedited, isVisiting, makeRoom } from "./visit.ts";

export const savedAt = signal<Date | null>(null);

const delay = 1000; // milliseconds

export function snapshot(): string {
  return JSON.stringify({ title: title.value, notebook: writeNotebook(cells.value, "figures") });
}

// Another notebook is about to take the place of this one.
export async function keepPrevious(): Promise<void> {
  if (isVisiting()) await makeRoom();
  else if (cells.value.length > 0) await storeNotebook("previous", snapshot());
}

// What a snapshot holds, touched without writing it: that takes a while when texts are long.
function touch(): void {
  void title.value;
  for (const cell of cells.value) void [cell.source.value, cell.folded.value, cell.outcome.value];
}

export function startAutosave(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last: string | null = null; // at first, what was just loaded
  let wasKeeper = isKeeper.value;
  const saveNow = async () => {
    clearTimeout(timer);
    timer = undefined;
    const text = snapshot();
    if (text === last || isUnedited(text) || !isKeeper.value) return;
    last = text;
    if (isVisiting()) await makeRoom();
    await storeNotebook("current", text);
    savedAt.value = new Date();
  };
  effect(() => {
    touch();
    if (isKeeper.value && !wasKeeper) last = ""; // what is kept is another tab's
    wasKeeper = isKeeper.value;
    document.title = `${title.value} · Lathe`;
    untracked(() => {
      if (isLinkShown()) dropStaleLink(snapshot());
      last ??= snapshot();
    });
    clearTimeout(timer);
    timer = setTimeout(() => void saveNow(), delay);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden" && timer !== undefined) void saveNow();
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
