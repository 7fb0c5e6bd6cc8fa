// What a pass did, in a few words and numbers; never by colour alone.
import type { DiffInfo, StepInfo, UnitSize } from "../engine/protocol.ts";
import type { Marks } from "../graph/scene.ts";
import { bytes, plural } from "./quantities.ts";

// A counter of a pass, such as "fused" or "planned_bytes".
function counted(name: string, value: number): string {
  if (name.endsWith("_bytes")) return `${name.slice(0, -6).replaceAll("_", " ")} ${bytes(value)}`;
  return `${name.replaceAll("_", " ")} ${value}`;
}

export function summary(step: StepInfo): string {
  if (step.skipped) return "skipped";
  if (!step.changed) return "no change";
  const { size_before: before, size_after: after } = step;
  const counters = Object.entries(step.counters).filter(([, value]) => value > 0);
  if (before.launches === 0 && after.launches > 0)
    return `${plural(before.nodes, "node")} → ${after.launches} launches`;
  // Of a pass over programs: their number of launches stays.
  const telling = counters.find(([name]) => name === "planned_bytes");
  const [main] = telling ? [telling] : counters;
  if (telling || before.nodes === after.nodes) return main ? counted(...main) : "changed";
  return `${before.nodes} → ${after.nodes} nodes`;
}

// "14 nodes, 27 more inside fused ones".
export function sizeWords({ nodes, inside, launches }: UnitSize): string {
  if (launches > 0) return plural(launches, "launch").replace("launchs", "launches");
  return plural(nodes, "node") + (inside > 0 ? `, ${inside} more inside fused ones` : "");
}

// The longer form: every counter, and which ops came and went.
export function details(step: StepInfo): string[] {
  const words = Object.entries(step.counters)
    .filter(([, value]) => value !== 0)
    .map(([name, value]) => counted(name, value));
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
