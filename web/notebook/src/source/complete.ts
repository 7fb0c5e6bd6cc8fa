// What could be typed at a place in a cell: calls, models, names from above, passes, arguments.
import type { Catalogue } from "../engine/protocol.ts";

export interface Known {
  models: string[]; // to import
  bundles: string[];
  modelNames: string[]; // values of cells above
  passesNames: string[];
  targets: readonly string[];
  catalogue: Catalogue | null;
  canBench: boolean;
}
export interface Choice {
  label: string;
  detail?: string;
}
export interface Choices {
  from: number;
  options: Choice[];
}

const plain = (labels: readonly string[]): Choice[] => labels.map((label) => ({ label }));

function passChoices(catalogue: Catalogue | null): Choice[] {
  if (!catalogue) return [];
  const named = [...catalogue.pipelines, ...catalogue.passes];
  return named.map(({ name, summary }) => ({ label: name, detail: summary }));
}

export function completionsAt(source: string, at: number, known: Known): Choices | null {
  const before = source.slice(0, at);
  const from = at - (/\w*$/.exec(before)?.[0].length ?? 0);
  const call = /(\w+)\s*\(([^]*)$/.exec(before);
  if (!call) {
    if (!/=\s*\w*$|^\s*\w*$/.test(before)) return null;
    const words = ["import", "passes", "bundle"];
    return { from, options: plain(known.canBench ? [...words, "bench"] : words) };
  }
  const [, name, rest = ""] = call;
  const isInText = (rest.replace(/\\./g, "").split('"').length - 1) % 2 === 1;
  if ((name === "import" || name === "bundle") && isInText) {
    const options = plain(name === "import" ? known.models : known.bundles);
    return { from: at - rest.length + rest.lastIndexOf('"') + 1, options };
  }
  if (name === "passes" && isInText) {
    if (/target\s*=\s*"[^"]*$/.test(rest)) return { from, options: plain(known.targets) };
    if (/force\s*=\s*"[^"]*$/.test(rest)) {
      const isFirst = /"\s*\w*$/.test(rest);
      return isFirst ? { from, options: plain(["kernel", "tile", "keep"]) } : null;
    }
    return { from, options: passChoices(known.catalogue) };
  }
  if (isInText) return null;
  if (name === "passes") {
    const isFirst = !rest.includes(",");
    return { from, options: plain(isFirst ? known.modelNames : ["target", "force"]) };
  }
  if (name === "bench")
    return { from, options: [...plain(known.passesNames), ...plain(["repeats", "seed"])] };
  return null;
}
