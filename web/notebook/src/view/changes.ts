// What a pass did, in a few words and numbers; never by colour alone.
import type { DiffInfo, StepInfo } from "../engine/protocol.ts";
import type { Marks } from "../graph/scene.ts";

export function summary(step: StepInfo): string {
  if (step.skipped) return "skipped";
  if (!step.changed) return "no change";
  const { nodes_before: before, nodes_after: after } = step;
  const [main] = Object.entries(step.counters).filter(([, value]) => value > 0);
  const counted = main ? `${main[1]} ${main[0].replaceAll("_", " ")}` : "";
  if (after === 0 || before === after) return counted || "changed";
  return `${before} → ${after} nodes`;
}

// The longer form: every counter, and which ops came and went.
export function details(step: StepInfo): string[] {
  const words = Object.entries(step.counters)
    .filter(([, value]) => value !== 0)
    .map(([name, value]) => `${value} ${name.replaceAll("_", " ")}`);
  const ops = Object.entries(step.ops)
    .filter(([, delta]) => delta !== 0)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
    .slice(0, 8)
    .map(([op, delta]) => `${delta > 0 ? "+" : "−"}${Math.abs(delta)} ${op}`);
  return [...words, ...ops];
}

export function marksOf(diff: DiffInfo): Marks {
  const marks = new Map<string, "added" | "changed">();
  for (const { name } of diff.added) marks.set(name, "added");
  for (const { name } of diff.changed) marks.set(name, "changed");
  return marks;
}

// The step that says most at first: the last one that changed the graph and left one.
export function mostTelling(steps: StepInfo[]): number {
  for (let i = steps.length - 1; i > 0; --i)
    if (steps[i]?.changed && steps[i]?.hash !== undefined) return i;
  return 0;
}
