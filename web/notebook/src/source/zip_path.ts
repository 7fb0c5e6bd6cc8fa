// Paths of a zip's entries, as if the zip were a folder: what the command line takes too.

export interface ZipPath {
  path: string; // the whole name where it has no entry
  entry: string | null;
}

export function splitPath(name: string): ZipPath {
  const inside = ".zip/";
  const at = name.indexOf(inside);
  if (at < 0) return { path: name, entry: null };
  return {
    path: name.slice(0, at + inside.length - 1),
    entry: name.slice(at + inside.length),
  };
}
