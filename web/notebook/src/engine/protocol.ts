// What the engine is asked and what it answers: the JSON of web/engine, as types. A field that is
// optional here is left out by the engine when it is empty.
import type { BundleInfo } from "./bundle_info.ts";

export interface Frame {
  file?: string;
  line?: number;
  function?: string;
  code?: string;
}

export interface Place extends Frame {
  kind: "python" | "text";
  column?: number;
  module?: string;
  class?: string;
  node?: string;
  target?: string;
  stack?: Frame[];
}

// Numbers in the answer's table of places, the one to show first; and the passes that made it.
export interface Placed {
  places?: number[];
  by?: string[];
}

export interface EngineError extends Placed {
  code: string;
  message: string;
  text: string; // as the command line prints it
  internal?: boolean;
  rows?: string[];
  notes?: (Placed & { message: string })[];
  table?: Place[];
  reproducer?: string;
}

export interface Tensor {
  name: string;
  dtype: string;
  shape: (number | string)[];
  type: string;
}

export interface ModelInfo {
  model: number;
  name: string;
  producer: string;
  nodes: number;
  num_weights: number;
  parameters: number;
  weight_bytes: number;
  has_weights: boolean;
  hash: string;
  dims: Record<string, { value: number; min?: number; max?: number }>;
  inputs: (Tensor & { sizes?: number[] })[];
  outputs: (Tensor | null)[];
}

// Bytes of a file that the engine wants: as they are, or what they inflate to.
export interface Range {
  begin: number;
  size: number;
  inflated?: number;
}
export interface NeedRanges {
  file: number;
  need: Range[];
}

export interface WeightInfo extends Tensor {
  kind: "parameter" | "buffer" | "constant";
  num_bytes: number;
  in_file: boolean;
}
export interface WeightPlace {
  name: string;
  begin: number;
  size: number;
  inflated?: number;
  first_byte: number;
  strides: number[];
  is_dense: boolean;
}

export interface Refusal extends Placed {
  message: string;
}
export interface UnitSize {
  nodes: number;
  inside: number; // of fused groups
  launches: number; // of a program
}
export interface StepInfo {
  pass: string;
  occurrence: number;
  options: Record<string, string>;
  skipped: boolean;
  changed: boolean;
  milliseconds: number;
  size_before: UnitSize;
  size_after: UnitSize;
  ops: Record<string, number>;
  counters: Record<string, number>;
  hash?: string;
  refusals: Refusal[];
}
// `step`: the one that did not run; those before it did.
export type Stopped = EngineError & { step: number };

export interface CompileInfo {
  run: number;
  passes: string;
  target: string;
  force: string[]; // what was decided instead of the passes
  form: string;
  milliseconds: number;
  has_symbols: boolean; // the run ends in a program over them
  steps: StepInfo[]; // [0] is the import
  table: Place[];
  failed?: Stopped;
}

export interface DiffNode extends Placed {
  name: string;
  op: string;
  text: string;
  before?: string;
}
export interface DiffInfo {
  removed: DiffNode[];
  added: DiffNode[];
  changed: DiffNode[];
  lowered: boolean;
  table?: Place[];
}

export type OpClass =
  | "elementwise"
  | "view"
  | "gather"
  | "reduction"
  | "normalize"
  | "contraction"
  | "matrix"
  | "source"
  | "structure"
  | "opaque";

export interface GraphNode extends Placed {
  name?: string; // results have none
  op: string;
  class: OpClass;
  types: string[];
  attrs?: Record<string, string>;
  in_place?: boolean;
  inner_nodes?: number;
  module?: string;
}
export type Box = [x: number, y: number, width: number, height: number];
export interface ClusterInfo {
  key: string;
  module: string;
  parent: number;
  folded: boolean;
  nodes: number;
  box: Box;
}
export interface RouteInfo {
  from: number;
  to: number;
  from_cluster?: number;
  to_cluster?: number;
  points: number[]; // x, y, x, y, ...
}
export interface DrawingInfo {
  width: number;
  height: number;
  boxes: (Box | number | null)[]; // by node; the cluster that hides it; or not drawn
  clusters: ClusterInfo[];
  routes: RouteInfo[];
}
export interface GraphInfo {
  nodes: GraphNode[];
  edges: [from: number, result: number, to: number, operand: number][];
  table: Place[];
  drawing?: DrawingInfo;
}

// What a launch is predicted to spend most time with.
export const bounds = ["arithmetic", "memory", "launch"] as const;
export type Bound = (typeof bounds)[number];
// One way to make a region: the seconds that it was predicted to take, or why it is none.
export interface Candidate {
  plan: string;
  predicted?: number;
  why_not?: string;
  force?: string[]; // the lines that ask for it
}
export interface LaunchInfo extends Placed {
  label: string;
  kind: "kernel" | "library" | "copy" | "shape" | "host";
  kernel?: number;
  flops: number;
  bytes: number;
  // Of the steps of a target with prices: seconds.
  predicted?: number;
  limit?: number;
  bound?: Bound;
  // What of the graph it computes, and the choice that was made for it.
  region?: string;
  plan?: string;
  forced?: boolean;
  candidates?: Candidate[];
}
export interface BufferInfo {
  name: string;
  kind: "input" | "output" | "weight" | "constant" | "persistent" | "temporary";
  type: string;
  num_bytes: number;
  offset?: number;
  weight?: string;
}
export interface ProgramInfo {
  name: string;
  num_kernels: number;
  arena_bytes: number;
  inputs: number[];
  outputs: number[];
  init: LaunchInfo[];
  steps: LaunchInfo[];
  gigahertz: number; // of the core that prices reckon with
  buffers: BufferInfo[];
  table: Place[];
}

// What a program over symbols costs: formulas, and their values at some sizes.
export interface Formula {
  text: string;
  here?: number; // none: it is too large
}
export interface SymbolInfo {
  name: string;
  min: number;
  max: number; // where a curve ends, when the range does not
  is_bounded: boolean;
  hint: number; // the size that was compiled for
  here: number;
}
export interface SizePoint {
  size: number;
  predicted?: number; // seconds; none of GPUs
  arena_bytes: number;
}
export interface SizesInfo {
  symbols: SymbolInfo[];
  guards: string[];
  flops: Formula;
  bytes: Formula;
  peak: Formula; // bytes of temporaries
  predicted?: number; // seconds; none where the sizes are refused, as arena_bytes
  arena_bytes?: number;
  refused?: string; // by which range or guard
  curve?: SizePoint[];
}

// Where a program's module has its tensors in memory, in bytes, and what it calls in which order.
export interface PlacedTensor {
  name: string;
  address: number;
  bytes: number;
}
export interface ModuleLayout {
  pages: number;
  // Of a program over symbols: what the layout's sizes are to the module, to be written before it
  // is called.
  table?: { address: number; words: number[] };
  weights: PlacedTensor[];
  init: { function: string; label: string; weights: PlacedTensor[] }[];
  inputs: PlacedTensor[];
  outputs: PlacedTensor[];
  steps: { function: string; label: string; asserts?: Assertion }[];
}

// The number at the address, less `low` and without its sign bit, is below `high` - `low`; the
// module traps where it is not.
export interface Assertion {
  address: number;
  low: number;
  high: number;
  message: string; // with {index} and {size} where the number and `high` stand
}

export interface PassInfo {
  name: string;
  summary: string;
  needs: string;
  leaves: string;
  counters: string[];
  options: { name: string; default: string; doc: string }[];
}
export interface PipelineInfo {
  name: string;
  summary: string;
  steps: { step: string; why: string }[];
}
export interface Catalogue {
  passes: PassInfo[];
  pipelines: PipelineInfo[];
}

export interface CheckInfo {
  passed: boolean;
  max_abs_error: number | null;
  rmse: number | null;
  rounded_rmse: number | null;
  why?: string;
}

type Seed = `random:${number}`;

// Sizes of symbols; those that are not given are the ones that were compiled for.
export type Dims = Record<string, number>;

// Every request by its name.
export interface Requests {
  about: { ask: object; answer: { version: number; targets: string[] } };
  catalogue: { ask: object; answer: Catalogue };
  open: {
    ask:
      | { name: string; dims?: Dims }
      | { name: string; size: number; entry?: string; dims?: Dims }
      | { file: number; ranges: Range[]; entry?: string; dims?: Dims };
    answer: ModelInfo | NeedRanges;
  };
  bundle: {
    ask: { name: string; size: number } | { file: number; ranges: Range[] };
    answer: BundleInfo | NeedRanges;
  };
  close: { ask: { model?: number; run?: number; file?: number }; answer: object };
  weights: { ask: { model: number }; answer: { weights: WeightInfo[] } };
  weight_places: {
    ask: { model: number; ranges?: Range[] };
    answer: { places?: WeightPlace[]; need?: Range[] };
  };
  make_weight: {
    ask: { model: number; name: string; seed: Seed; first?: number; count?: number };
    answer: Tensor;
  };
  make_input: {
    ask: { model: number; input: number; seed: Seed; dims?: Dims; first?: number; count?: number };
    answer: Tensor;
  };
  compile: {
    ask: { model: number; passes: string; isa?: string; skip?: string[]; force?: string[] };
    answer: CompileInfo;
  };
  text: { ask: { run: number; step: number }; answer: { text: string } };
  diff: { ask: { run: number; step: number }; answer: DiffInfo };
  graph: {
    ask: { run: number; step: number; draw?: boolean; folded?: string[]; char_width?: number };
    answer: GraphInfo;
  };
  program: { ask: { run: number; dims?: Dims }; answer: ProgramInfo };
  sizes: {
    ask: { run: number; dims?: Dims; along?: string; points?: number };
    answer: SizesInfo;
  };
  kernel: {
    ask: { run: number; kernel: number };
    answer: Placed & { name: string; text: string; table: Place[] };
  };
  emit: {
    ask: { run: number; what: string; dims?: Dims };
    answer: { text?: string; layout?: ModuleLayout };
  };
  check: {
    ask: { run: number; weights?: Seed; inputs?: Seed; results?: boolean; dims?: Dims };
    answer: CheckInfo;
  };
}
export type RequestName = keyof Requests;
export type Ask<K extends RequestName> = Requests[K]["ask"];
export type AnswerOf<K extends RequestName> = Requests[K]["answer"];

// Between the page and the engine's worker.
export type ToWorker =
  | { kind: "load"; url: string }
  | { id: number; kind: "request"; name: RequestName; ask: object; bytes?: Uint8Array }
  | { id: number; kind: "open"; name: string; data: Blob; entry: string | null; dims: Dims }
  | { id: number; kind: "bundle"; name: string; data: Blob };
export type FromWorker =
  | { id: number; kind: "answer"; json: unknown; bytes: Uint8Array }
  | { id: number; kind: "refused"; error: EngineError }
  | { id: number; kind: "died"; message: string };
