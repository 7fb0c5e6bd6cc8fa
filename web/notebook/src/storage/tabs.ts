// One tab at a time keeps the notebook: a lock that the browser gives to one of them and passes on
// when that tab is closed. The others say so, save nothing, and can take it over; what was kept
// before then becomes the notebook that was open before.
import { signal } from "@preact/signals";
import { storedNotebook, storeNotebook } from "./store.ts";
import { isVisiting } from "./visit.ts";

// Whether this tab is the one. True until it is known that another is.
export const isKeeper = signal(true);

const name = "lathe notebook";

let mine: () => string = () => "";

// What another tab left must not be lost when this one writes its own in that place.
async function keepTheirs(): Promise<void> {
  const theirs = await storedNotebook("current");
  const isLost = theirs !== null && theirs !== mine() && !isVisiting();
  if (isLost) await storeNotebook("previous", theirs);
}

// Holds the lock until it is taken away or the tab ends.
function hold(options: LockOptions, isLate: boolean): void {
  const held = navigator.locks.request(name, options, async () => {
    if (isLate) await keepTheirs();
    isKeeper.value = true;
    return new Promise<never>(() => undefined);
  });
  held.catch(() => {
    isKeeper.value = false; // another tab took it
    hold({}, true);
  });
}

// Resolves when it is known who keeps. `snapshot`: this tab's notebook, as it would be saved.
export async function startKeeping(snapshot: () => string): Promise<void> {
  mine = snapshot;
  const { locks } = navigator as { locks?: LockManager };
  if (!locks) return; // an old browser: the last tab that writes wins
  const { held = [] } = await locks.query();
  isKeeper.value = !held.some((lock) => lock.name === name);
  hold({}, !isKeeper.value);
}

export function takeOver(): void {
  hold({ steal: true }, true);
}
