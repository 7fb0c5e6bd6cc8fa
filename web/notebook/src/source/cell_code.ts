// What a cell's statement means: the calls that there are and the arguments each takes.
import { nearest } from "./nearest.ts";
import { parse, type Argument, type SourceError, type Span, type Statement } from "./parse.ts";

export interface ModelCode {
  kind: "model";
  name: string;
  file: string;
  dims: Record<string, number>;
}
export interface PassesCode {
  kind: "passes";
  name: string;
  model: Span & { value: string };
  pipeline: Span & { value: string };
  target?: string;
  force: (Span & { value: string })[]; // each with the comma before it
  end: number; // of the last argument
}
export interface BenchCode {
  kind: "bench";
  runs: (Span & { value: string })[];
  repeats: number;
  seed: number;
}
export interface BundleCode {
  kind: "bundle";
  file: string;
}
export type CellCode = ModelCode | PassesCode | BenchCode | BundleCode;
export type Understood = { ok: true; code: CellCode } | { ok: false; error: SourceError };

// The call that makes a cell of each kind.
export const calls = {
  import: "model",
  passes: "passes",
  bench: "bench",
  bundle: "bundle",
} as const;
export type CallName = keyof typeof calls;

function error(span: Span, message: string): { ok: false; error: SourceError } {
  return { ok: false, error: { from: span.from, to: span.to, message } };
}

function isCall(name: string): name is CallName {
  return Object.hasOwn(calls, name);
}

function wrong(argument: Argument, expected: string) {
  const key = argument.key ? `'${argument.key.value}' is ` : "got ";
  return error(argument.value, `${key}${argument.value.value}, expected ${expected}`);
}

const isCount = ({ value }: Argument, least: number) =>
  value.kind === "number" && Number.isSafeInteger(value.value) && value.value >= least;

function modelCode(statement: Statement, name: string): Understood {
  const [file, ...rest] = statement.args;
  if (!file || file.key || file.value.kind !== "text")
    return error(file?.value ?? statement.call, "expected a model's name in quotes");
  const dims: Record<string, number> = {};
  for (const argument of rest) {
    if (!argument.key) return error(argument.value, "expected a size, such as s0=64");
    if (!isCount(argument, 0)) return wrong(argument, "a size, a whole number");
    dims[argument.key.value] = argument.value.value as number;
  }
  return { ok: true, code: { kind: "model", name, file: file.value.value, dims } };
}

function passesCode(statement: Statement, name: string): Understood {
  const [model, pipeline, ...rest] = statement.args;
  if (!model || model.key || model.value.kind !== "name")
    return error(model?.value ?? statement.call, "expected the name of a model cell first");
  if (!pipeline || pipeline.key || pipeline.value.kind !== "text")
    return error(pipeline?.value ?? model.value, 'expected passes in quotes, such as "default"');
  const { to: end } = pipeline.value;
  const code: PassesCode = {
    kind: "passes",
    name,
    model: model.value,
    pipeline: pipeline.value,
    force: [],
    end,
  };
  for (const { key, value } of rest) {
    if (key?.value === "target") {
      if (value.kind !== "text") return wrong({ key, value }, "a target's name in quotes");
      code.target = value.value;
    } else if (key?.value === "force") {
      if (value.kind !== "text")
        return wrong({ key, value }, 'a decision in quotes, such as "kernel matmul = loops"');
      code.force.push({ value: value.value, from: code.end, to: value.to });
    } else {
      return unknownKey({ key, value }, ["target", "force"]);
    }
    code.end = value.to;
  }
  return { ok: true, code };
}

function benchCode(statement: Statement): Understood {
  const code: BenchCode = { kind: "bench", runs: [], repeats: 20, seed: 0 };
  for (const argument of statement.args) {
    if (!argument.key) {
      if (argument.value.kind !== "name") return wrong(argument, "the name of a passes cell");
      code.runs.push(argument.value);
    } else if (argument.key.value === "repeats") {
      if (!isCount(argument, 1)) return wrong(argument, "a whole number from 1");
      code.repeats = Math.min(argument.value.value as number, 10_000);
    } else if (argument.key.value === "seed") {
      if (!isCount(argument, 0)) return wrong(argument, "a whole number from 0");
      code.seed = argument.value.value as number;
    } else {
      return unknownKey(argument, ["repeats", "seed"]);
    }
  }
  if (code.runs.length === 0) return error(statement.call, "expected the name of a passes cell");
  return { ok: true, code };
}

function bundleCode(statement: Statement): Understood {
  const [file, more] = statement.args;
  if (!file || file.key || file.value.kind !== "text")
    return error(file?.value ?? statement.call, 'expected a file in quotes, such as "model.zip"');
  if (more) return error(more.key ?? more.value, "a bundle takes nothing but its file");
  return { ok: true, code: { kind: "bundle", file: file.value.value } };
}

function unknownKey(argument: Argument, known: string[]) {
  const span = argument.key ?? argument.value;
  const word = argument.key?.value ?? String(argument.value.value);
  const near = nearest(word, known);
  const hint = near ? `did you mean '${near}'?` : `expected ${known.join(" or ")}`;
  return error(span, `no argument named '${word}'; ${hint}`);
}

export function understand(source: string): Understood {
  const parsed = parse(source);
  if (!parsed.ok) return parsed;
  const { statement } = parsed;
  const { call, name } = statement;
  if (!isCall(call.value)) {
    const near = nearest(call.value, Object.keys(calls));
    const hint = near ? `did you mean '${near}'?` : "there are import, passes, bench and bundle";
    return error(call, `no call named '${call.value}'; ${hint}`);
  }
  if (calls[call.value] === "bench" || calls[call.value] === "bundle") {
    if (name) return error(name, `a ${call.value} has no name; write ${call.value}(...)`);
    return calls[call.value] === "bench" ? benchCode(statement) : bundleCode(statement);
  }
  if (!name) return error(call, `'${call.value}' needs a name: NAME = ${call.value}(...)`);
  return calls[call.value] === "model"
    ? modelCode(statement, name.value)
    : passesCode(statement, name.value);
}
