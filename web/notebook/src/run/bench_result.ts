// What a bench measured, as it is shown and saved.

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
}

export interface RunResult {
  name: string;
  pipeline: string;
  model?: string; // which one, and its sizes; figures of older notebooks do not say
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
  weights?: string; // where they came from: "random:0", or the model's file
  when: string; // ISO 8601
  agent: string; // the browser's own name
}

export function spreadOf(samples: number[]): Spread {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  return { median: at(0.5), low: at(0.1), high: at(0.9) };
}
