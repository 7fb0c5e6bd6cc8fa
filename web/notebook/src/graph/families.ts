// The visual language of ops: five families, and groups that passes fused; each with a colour and a
// sign, so that neither has to be understood alone.
import type { GraphNode, OpClass } from "../engine/protocol.ts";

export type Family = "contract" | "point" | "reduce" | "view" | "data" | "group";

export const families: Record<Family, { sign: string; word: string }> = {
  contract: { sign: "×", word: "contraction" },
  point: { sign: "ƒ", word: "pointwise" },
  reduce: { sign: "Σ", word: "reduction" },
  view: { sign: "⇄", word: "view or layout" },
  data: { sign: "▢", word: "data" },
  group: { sign: "⊞", word: "fused group" },
};

const familyOfClass: Record<OpClass, Family> = {
  contraction: "contract",
  matrix: "contract",
  elementwise: "point",
  opaque: "point",
  reduction: "reduce",
  normalize: "reduce",
  view: "view",
  gather: "view",
  source: "data",
  structure: "data",
};

export const familyOf = (node: GraphNode): Family =>
  node.inner_nodes === undefined ? familyOfClass[node.class] : "group";
