// What the engine tells of a bundle of lathe.capture, as types.

export interface CapturedFrame {
  frame: number;
  function: string;
  is_resumed: boolean; // behind a graph break of that function
  file: string;
  line: number;
}

export interface CapturedGraph {
  ops: number;
  ends: string;
  entry?: string; // of the zip, to be opened as a model; none: `refused` says why
  refused?: string;
  inputs: { name: string; source: string; is_state: boolean }[];
  python?: string;
}

// One compilation of a frame.
export interface CapturedCompile {
  id: string; // "F_C"
  frame: number;
  call?: number;
  seconds?: number;
  failure?: string;
  graph?: CapturedGraph;
  guards?: string; // as PyTorch prints them
  break?: number; // the one of `breaks` that it ends at
}

export interface GraphBreak {
  reason: string;
  explanation: string;
  hints: string[];
  file: string;
  line: number;
  url: string;
  lines: { line: number; code: string }[]; // that line and those around it
}

// One cause, and the compilations that it brought about beside its own.
export interface RecompileCause {
  id: string;
  frame: number;
  call: number;
  kind: string;
  reason: string;
  reasons: string[];
  follow: string[];
  // The line that asked for the guard, where PyTorch says it.
  file?: string;
  line?: number;
  code?: string;
}

export interface BundleInfo {
  name: string;
  model: string;
  torch: string;
  origin: string;
  calls: number;
  frames: CapturedFrame[];
  compiles: CapturedCompile[];
  breaks: GraphBreak[];
  num_recompiles: number;
  recompiles: RecompileCause[];
}
