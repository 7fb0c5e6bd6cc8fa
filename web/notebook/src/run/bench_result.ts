// What a bench measured, as it is shown and saved. Fields that may be missing were not yet written
// by older pages.
import type { Bound } from "../engine/protocol.ts";

export interface Spread {
  median: number; // milliseconds
  low: number; // 10th percentile
  high: number; // 90th
}

export interface StepResult {
  label: string;
  kernel: number | null; // in the program
  mean: number; // milliseconds of the step called alone; a browser's clock is too coarse for more
  flops: number;
  bytes: number;
  region?: string; // what of the graph it computes
  plan?: string; // the kind of kernel that was chosen for it
  predicted?: number; // milliseconds
  limit?: number; // milliseconds that any launch of this work needs
  bound?: Bound;
}

// As ./lathe explain --choices marks them.
export const farFromLimit = 4;
export const isFar = ({ mean, limit }: StepResult) =>
  limit !== undefined && mean > farFromLimit * limit;

export interface RunResult {
  name: string;
  pipeline: string;
  target?: string;
  force?: string[];
  model?: string; // which one, and its sizes
  total: Spread;
  samples: number[]; // milliseconds of whole runs
  settled: boolean; // whether the last samples agreed
  steps: StepResult[];
  memory_bytes: number;
  check: { passed: boolean; max_abs_error: number | null; why?: string } | { skipped: string };
}

export interface BenchResult {
  runs: RunResult[];
  isa: string;
  seed: number;
  gigahertz?: number; // of the core that predicted times and limits are of
  weights?: string; // where they came from: "random:0", or the model's file
  when: string; // ISO 8601
  agent: string; // the browser's own name
}

export function spreadOf(samples: number[]): Spread {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  return { median: at(0.5), low: at(0.1), high: at(0.9) };
}
