// Pipeline text as a list of chips, and back. A chip is a step that runs, or one that a `-pass`
// behind it takes out. Edits keep a named pipeline's name for as long as they only switch passes.
import type { PipelineInfo } from "../engine/protocol.ts";

export interface Chip {
  pass: string;
  text: string; // with its options
  isOn: boolean;
  why?: string; // in a named pipeline
}

// Steps at commas outside of braces and quotes.
export function splitSteps(text: string): string[] {
  const steps: string[] = [];
  let depth = 0;
  let isQuoted = false;
  let step = "";
  for (let i = 0; i < text.length; ++i) {
    const c = text[i] ?? "";
    if (isQuoted && c === "\\") {
      step += c + (text[++i] ?? "");
      continue;
    }
    if (c === '"') isQuoted = !isQuoted;
    if (!isQuoted && c === "{") ++depth;
    if (!isQuoted && c === "}") --depth;
    if (c === "," && depth <= 0 && !isQuoted) {
      steps.push(step.trim());
      step = "";
    } else {
      step += c;
    }
  }
  if (step.trim()) steps.push(step.trim());
  return steps;
}

export const passOf = (step: string) => step.replace(/^-/, "").replace(/\{.*$/s, "");

export function chipsOf(text: string, pipelines: PipelineInfo[]): Chip[] {
  const chips: Chip[] = [];
  for (const step of splitSteps(text)) {
    const named = pipelines.find(({ name }) => name === step);
    if (step.startsWith("-")) {
      for (const chip of chips) if (chip.pass === passOf(step)) chip.isOn = false;
    } else if (named) {
      for (const inner of named.steps)
        chips.push({ pass: passOf(inner.step), text: inner.step, isOn: true, why: inner.why });
    } else {
      chips.push({ pass: passOf(step), text: step, isOn: true });
    }
  }
  return chips;
}

// A pass is switched wherever it stands: that is what `-pass` means.
export function toggled(text: string, chips: Chip[], index: number): string {
  const chip = chips[index];
  if (!chip) return text;
  const steps = splitSteps(text);
  if (chip.isOn) return [...steps, `-${chip.pass}`].join(",");
  return steps.filter((step) => step !== `-${chip.pass}`).join(",");
}

// Every step by itself, those switched off at the end as removals.
export function spelled(chips: Chip[]): string {
  const off = new Set(chips.filter(({ isOn }) => !isOn).map(({ pass }) => pass));
  return [...chips.map(({ text }) => text), ...[...off].map((pass) => `-${pass}`)].join(",");
}

export function moved(chips: Chip[], from: number, to: number): string {
  const list = [...chips];
  const [chip] = list.splice(from, 1);
  if (chip) list.splice(Math.max(0, Math.min(to, list.length)), 0, chip);
  return spelled(list);
}

export function without(chips: Chip[], index: number): string {
  return spelled(chips.filter((_, i) => i !== index));
}

export function inserted(chips: Chip[], index: number, pass: string): string {
  const list = [...chips];
  list.splice(index, 0, { pass, text: pass, isOn: true });
  return spelled(list);
}

export function withOptions(chips: Chip[], index: number, options: Record<string, string>): string {
  const list = chips.map((chip) => ({ ...chip }));
  const chip = list[index];
  if (!chip) return spelled(chips);
  const words = Object.entries(options).map(([name, value]) => {
    const isPlain = !/[\s{}"\\]/.test(value);
    return `${name}=${isPlain ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`;
  });
  chip.text = words.length > 0 ? `${chip.pass}{${words.join(" ")}}` : chip.pass;
  return spelled(list);
}
