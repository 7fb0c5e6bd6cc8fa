// The models that a cell can name: those that came with the page, and files that a person gave it.
import { signal } from "@preact/signals";
import type { ModelSource } from "../engine/handle.ts";
import { nearest } from "../source/nearest.ts";
import { splitPath } from "../source/zip_path.ts";
import { storeFile, storedFile } from "../storage/store.ts";

const urls = import.meta.glob<string>("../../data/models/*.json.gz", {
  query: "?url",
  import: "default",
  eager: true,
});

const builtIn = new Map<string, string>();
for (const [path, url] of Object.entries(urls)) {
  const name = path.replace(/^.*\//, "").replace(/\.json\.gz$/, "");
  builtIn.set(name, url);
}

export const smallModels = ["small_ffnn", "small_cnn", "attention_block"];
export const builtInNames = [...builtIn.keys()].sort(
  (a, b) => Number(smallModels.includes(b)) - Number(smallModels.includes(a)) || (a < b ? -1 : 1),
);
export const isBuiltIn = (name: string) => builtIn.has(name);

export const fileEndings = [".pt2", ".json", ".json.gz", ".lathe"];
export const isModelFile = (name: string) => fileEndings.some((ending) => name.endsWith(ending));
export const isBundleFile = (name: string) => name.endsWith(".zip");

// By name; kept in the browser, so that a reload finds them.
export const files = signal<ReadonlyMap<string, Blob>>(new Map());

// The browser writes a copy of its own, which takes longer than to read the graph.
export function addFile(file: File): void {
  files.value = new Map([...files.value, [file.name, file]]);
  void storeFile(file.name, file);
}

export class NoSuchModel extends Error {}

const fileOf = async (name: string) => files.value.get(name) ?? (await storedFile(name));
const notHere = (name: string) =>
  new NoSuchModel(`the file '${name}' is not here; drop it on the page, or choose it`);

export async function bundleOf(name: string): Promise<Blob> {
  const file = await fileOf(name);
  if (file) return file;
  throw isBundleFile(name)
    ? notHere(name)
    : new NoSuchModel(`'${name}' is no bundle's file; lathe.capture writes one that ends in .zip`);
}

export async function sourceOf(name: string, dims: Record<string, number>): Promise<ModelSource> {
  const url = builtIn.get(name);
  if (url) {
    const read = async () => {
      const response = await fetch(url);
      if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
      return response.blob();
    };
    return { name: `${name}.json.gz`, read, entry: null, dims };
  }
  const { path, entry } = splitPath(name);
  const file = await fileOf(path);
  if (file) return { name, read: () => Promise.resolve(file), entry, dims };
  if (entry !== null || isModelFile(name)) throw notHere(path);
  const near = nearest(name, builtInNames);
  const hint = near ? `did you mean '${near}'?` : "files have an ending, such as .pt2";
  throw new NoSuchModel(`no model named '${name}'; ${hint}`);
}

// A name that a cell can use, from a file's.
export function nameFor(file: string): string {
  const { path, entry } = splitPath(file);
  const inside = entry === null ? "" : `_${entry.replace(/^.*\//, "")}`;
  const stem = (path.replace(/\.zip$/, "") + inside)
    .replace(/\.(json\.gz|json|pt2|lathe)$/, "")
    .replace(/\W+/g, "_");
  return /^[A-Za-z_]/.test(stem) ? stem : `model_${stem}`;
}
