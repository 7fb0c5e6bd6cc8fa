// What came of a cell, for programs that cannot run it: text, HTML without scripts, pictures.
import type { BundleInfo } from "../engine/bundle_info.ts";
import { pictureOf } from "../graph/drawn.ts";
import { shownValue, type Cell, type CellValue } from "../notebook/cell.ts";
import type { BenchResult } from "../run/bench_result.ts";
import { bundleSummary, placeOf } from "../view/bundle_rows.ts";
import { summary } from "../view/changes.ts";
import { big, bytes, milliseconds } from "../view/quantities.ts";
import { benchType } from "./read_bench.ts";

type Row = string[];

const escape = (text: string) =>
  text.replace(
    /[&<>"]/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] ?? c,
  );

function htmlTable(head: Row, rows: Row[]): string {
  const line = (tag: string, row: Row) =>
    `<tr>${row.map((cell) => `<${tag}>${escape(cell)}</${tag}>`).join("")}</tr>`;
  return `<table>\n${line("th", head)}\n${rows.map((row) => line("td", row)).join("\n")}\n</table>`;
}

function textTable(head: Row, rows: Row[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, k) => Math.max(...all.map((row) => (row[k] ?? "").length)));
  return all
    .map((row) =>
      row
        .map((cell, k) => cell.padEnd(widths[k] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function display(head: Row, rows: Row[], title: string, extra: object) {
  const data = {
    ...extra,
    "text/html": [`<p>${escape(title)}</p>\n`, htmlTable(head, rows)],
    "text/plain": `${title}\n${textTable(head, rows)}`.split(/(?<=\n)/),
  };
  return { output_type: "display_data", data, metadata: {} };
}

function benchDisplay(result: BenchResult) {
  const rows = result.runs.map((run) => {
    const { check } = run;
    const word = "skipped" in check ? `not checked: ${check.skipped}` : check.passed ? "yes" : "no";
    const { median, low, high } = run.total;
    return [
      run.name,
      milliseconds(median),
      `${milliseconds(low)} to ${milliseconds(high)}`,
      String(run.steps.length),
      word,
    ];
  });
  const head = ["passes", "median", "10th to 90th percentile", "launches", "agrees"];
  const extra = { [benchType]: result };
  return display(head, rows, `Measured ${result.when} with ${result.agent}`, extra);
}

function bundleDisplay(info: BundleInfo) {
  const rows = [
    ...info.breaks.map((broke) => ["break", placeOf(broke), broke.reason]),
    ...info.recompiles.map(({ file = "", line, reason, call }) => [
      "recompile",
      line === undefined ? "" : placeOf({ file, line }),
      `call ${call}: ${reason}`,
    ]),
  ];
  return display(["", "line", "reason"], rows, `${info.model}: ${bundleSummary(info)}`, {});
}

function displayOf(value: CellValue) {
  if (value.kind === "bench") return benchDisplay(value.result);
  if (value.kind === "model") {
    const { info } = value.model;
    const rows = [
      ...info.inputs.map(({ name, type }) => ["input", name, type]),
      ...info.outputs.map((output) => ["output", output?.name ?? "", output?.type ?? "none"]),
      ["weights", String(info.num_weights), `${big(info.parameters)}, ${bytes(info.weight_bytes)}`],
    ];
    return display(["", "name", "type"], rows, `${info.name}: ${info.nodes} nodes`, {});
  }
  if (value.kind === "bundle") return bundleDisplay(value.info);
  const { info } = value.run;
  const rows = info.steps
    .slice(1)
    .map((step) => [step.pass, summary(step), milliseconds(step.milliseconds)]);
  const title = `${info.steps.length - 1} passes in ${milliseconds(info.milliseconds)}`;
  return display(["pass", "what it did", "time"], rows, title, {});
}

export function outputsOf(cell: Cell): unknown[] {
  const { value: outcome } = cell.outcome;
  if (outcome.state === "failed")
    return [
      {
        output_type: "error",
        ename: outcome.failure.engine?.code ?? "error",
        evalue: outcome.failure.message,
        traceback: (outcome.failure.engine?.text ?? outcome.failure.message).split("\n"),
      },
    ];
  const value = shownValue(cell);
  if (!value) return [];
  const made = displayOf(value);
  const run = value.kind === "model" ? value.graph : value.kind === "passes" ? value.run : null;
  const picture = run && pictureOf(run);
  return picture ? [{ ...made, data: { "image/svg+xml": picture, ...made.data } }] : [made];
}
