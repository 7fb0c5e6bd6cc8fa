// What the engine knows: its passes and named pipelines. Asked once, kept.
import { signal } from "@preact/signals";
import { engine } from "../engine/engine.ts";
import type { Catalogue } from "../engine/protocol.ts";

export const catalogue = signal<Catalogue | null>(null);
export const targets = signal<readonly string[]>([]);

export async function loadCatalogue(): Promise<void> {
  if (catalogue.value) return;
  const about = await engine.request("about", {});
  targets.value = about.targets;
  catalogue.value = await engine.request("catalogue", {});
}
