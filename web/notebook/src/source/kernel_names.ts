// The names that a kernel's loop IR and its WebAssembly share: buffers (%x and $x.3) and loops (%k,
// and a comment behind `loop`). By them a place in one text is found in the other.

export interface Match {
  from: number;
  to: number;
}

function found(text: string, pattern: RegExp): Match[] {
  return [...text.matchAll(pattern)].map(({ index, 0: word }) => ({
    from: index,
    to: index + word.length,
  }));
}

// `name` is a word: letters, digits and _.
export function inLoops(text: string, name: string): Match[] {
  return found(text, new RegExp(`%${name}(?!\\w)`, "g"));
}

export function inWat(text: string, name: string): Match[] {
  return found(text, new RegExp(`\\$${name}\\.\\d+(?!\\w)|(?<=\\bloop  ?;; )${name}(?!\\w)`, "g"));
}

export function sharedNames(loops: string, wat: string): string[] {
  const names = new Set([...loops.matchAll(/%([A-Za-z_]\w*)/g)].map(([, name]) => name ?? ""));
  return [...names].filter((name) => inWat(wat, name).length > 0);
}

// The name at a place of either text.
export function nameAt(text: string, at: number): string | null {
  const before = /[%$\w.]*$/.exec(text.slice(Math.max(0, at - 200), at))?.[0] ?? "";
  const after = /^[\w.]*/.exec(text.slice(at, at + 200))?.[0] ?? "";
  return /^[%$]?([A-Za-z_]\w*)/.exec(before + after)?.[1] ?? null;
}

// The text of one function in a module's WAT: from its head to the next one's.
export function functionIn(wat: string, name: string): string {
  const head = new RegExp(`^( *)\\(func \\$${name}(?!\\w)`, "m").exec(wat);
  if (!head) return "";
  const rest = wat.slice(head.index);
  const end = rest.search(new RegExp(`\\n${head[1] ?? ""}\\(|\\n\\)\\s*$`));
  return end < 0 ? rest : rest.slice(0, end);
}
