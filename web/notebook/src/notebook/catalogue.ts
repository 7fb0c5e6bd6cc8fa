// What the engine knows: its passes, named pipelines and targets. Asked once, kept.
import { computed, signal } from "@preact/signals";
import { engine } from "../engine/engine.ts";
import type { Catalogue } from "../engine/protocol.ts";

export const catalogue = signal<Catalogue | null>(null);
export const targets = signal<readonly string[]>([]);

// An engine without a target of WebAssembly compiles and explains, but runs nothing.
export const canBench = computed(() => targets.value.includes("simd128"));

// (func (drop (f32x4.relaxed_madd ...))): whether this browser takes relaxed SIMD.
const relaxedModule = new Uint8Array([
  0x00,
  0x61,
  0x73,
  0x6d,
  1,
  0,
  0,
  0,
  1,
  4,
  1,
  0x60,
  0,
  0,
  3,
  2,
  1,
  0,
  10,
  62,
  1,
  60,
  0,
  ...[0, 1, 2].flatMap(() => [0xfd, 12, ...new Array<number>(16).fill(0)]),
  0xfd,
  0x85,
  0x02,
  0x1a,
  0x0b,
]);

// What passes compile for unless a cell says otherwise; nothing leaves the choice to the engine.
export async function usualTarget(): Promise<string | undefined> {
  await loadCatalogue();
  if (!canBench.value) return undefined;
  return WebAssembly.validate(relaxedModule) ? "relaxed" : "simd128";
}

let loading: Promise<void> | null = null;

async function load(): Promise<void> {
  targets.value = (await engine.request("about", {})).targets;
  catalogue.value = await engine.request("catalogue", {});
}

export function loadCatalogue(): Promise<void> {
  loading ??= load();
  loading.catch(() => (loading = null)); // the next one asks again
  return loading;
}
