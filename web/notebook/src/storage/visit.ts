// A notebook that came with a link is on a visit until it is edited: nothing of it is kept, and
// what was kept stays where it is.
import { storedNotebook, storeNotebook } from "./store.ts";

let arrived: string | null = null; // the visitor's snapshot

export function startVisit(snapshot: string): void {
  arrived = snapshot;
}

export const isVisiting = () => arrived !== null;
export const isUnedited = (snapshot: string) => arrived === snapshot;

export function endVisit(): void {
  arrived = null;
}

// The visitor stays, or another notebook comes: what is kept makes room for what is saved next.
export async function makeRoom(): Promise<void> {
  endVisit();
  const kept = await storedNotebook("current");
  if (kept !== null) await storeNotebook("previous", kept);
}
