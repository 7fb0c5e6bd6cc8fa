// One cell: its head with the text and the buttons, and what came of it.
import { useEffect, useRef, useState } from "preact/hooks";
import { canBench, catalogue, targets } from "../notebook/catalogue.ts";
import { isCode, isEdited, shownValue, valueOf, type Cell } from "../notebook/cell.ts";
import { changedSince } from "../notebook/changed.ts";
import { cancel, run } from "../notebook/evaluate.ts";
import { builtInNames, files, isBundleFile, isModelFile } from "../notebook/models.ts";
import * as notebook from "../notebook/notebook.ts";
import { understand } from "../source/cell_code.ts";
import type { Known } from "../source/complete.ts";
import { BenchView } from "./bench_view.tsx";
import { BundleView } from "./bundle_view.tsx";
import { Failure } from "./failure.tsx";
import { ForeignView } from "./foreign_view.tsx";
import { MarkdownView } from "./markdown_view.tsx";
import { ModelView } from "./model_view.tsx";
import { PassesView } from "./passes_view.tsx";
import { milliseconds, plural } from "./quantities.ts";

// A cell may say another thing than it did when it was made.
function kindOf(cell: Cell): Cell["kind"] {
  const understood = isCode(cell) ? understand(cell.source.value) : null;
  return understood?.ok ? understood.code.kind : cell.kind;
}

const kindWords = {
  model: "model",
  passes: "passes",
  bench: "bench",
  bundle: "bundle",
  markdown: "text",
  foreign: "kept, not run",
};

function knownAt(cell: Cell): Known {
  const above = notebook.cells.value.slice(0, notebook.indexOf(cell.id));
  const names = (kind: "model" | "passes") =>
    above.flatMap((one) => {
      const value = isCode(one) ? valueOf(one) : null;
      return value?.kind === kind && "name" in value ? [value.name] : [];
    });
  return {
    models: [...[...files.value.keys()].filter(isModelFile), ...builtInNames],
    bundles: [...files.value.keys()].filter(isBundleFile),
    modelNames: names("model"),
    passesNames: names("passes"),
    targets: targets.value,
    catalogue: catalogue.value,
    canBench: canBench.value,
  };
}

function Editor({ cell }: { cell: Cell }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const parent = host.current;
    let close: (() => void) | undefined;
    let isGone = false;
    void import("./editor.ts").then(({ openEditor }) => {
      if (!parent || isGone) return;
      close = openEditor(parent, {
        text: cell.source.value,
        isCode: isCode(cell),
        label: `${kindWords[cell.kind]} cell`,
        known: () => knownAt(cell),
        changed: (text) => (cell.source.value = text),
        finish: (how) => {
          notebook.focus(cell.id);
          if (how !== "leave") void run(cell);
          if (how === "run and go on") goOn(cell);
          if (how === "run and insert")
            notebook.add(
              cell.kind === "markdown" ? "markdown" : "passes",
              notebook.indexOf(cell.id) + 1,
            );
        },
      });
    });
    return () => {
      isGone = true;
      close?.();
    };
  }, [cell]);
  return <div class="editor" ref={host} />;
}

export function goOn(cell: Cell): void {
  const next = notebook.cells.value[notebook.indexOf(cell.id) + 1];
  if (next) notebook.focus(next.id);
  else notebook.add("markdown", notebook.cells.value.length);
}

function status(cell: Cell): string {
  const outcome = cell.outcome.value;
  if (outcome.state === "waiting") return "waiting";
  if (outcome.state === "failed") return "failed";
  if (outcome.state === "blocked") return "not run";
  const value = shownValue(cell);
  const edited = isEdited(cell) ? "edited since; " : "";
  if (outcome.state === "running") return "running";
  if (outcome.state === "kept") return `${edited}measured earlier`;
  if (!value || outcome.state !== "done") return isCode(cell) ? "not run" : "";
  const time = milliseconds(outcome.milliseconds);
  if (value.kind === "model")
    return `${edited}${plural(value.model.info.nodes, "node")} · read in ${time}`;
  if (value.kind === "passes") {
    if (value.run.info.failed) return `${edited}stopped by an error`;
    const passes = plural(value.run.info.steps.length - 1, "pass").replace("passs", "passes");
    return `${edited}${passes} · ${milliseconds(value.run.info.milliseconds)}`;
  }
  if (value.kind === "bundle")
    return `${edited}${plural(value.info.breaks.length, "graph break")} · read in ${time}`;
  if (value.kind === "bench" && changedSince(cell, value.result).length > 0)
    return `${edited}out of date`;
  return `${edited}took ${time}`;
}

function Elapsed({ since }: { since: number }) {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.floor((now - since) / 1000);
  return seconds > 0 ? <span class="soft">{seconds} s</span> : null;
}

function Output({ cell }: { cell: Cell }) {
  const outcome = cell.outcome.value;
  if (cell.kind === "markdown") return null;
  if (cell.kind === "foreign") return <ForeignView cell={cell} />;
  if (outcome.state === "failed")
    return <Failure failure={outcome.failure} source={outcome.source} />;
  if (outcome.state === "blocked")
    return (
      <p class="soft pad">
        Not run: the cell above that makes <b class="mono">{outcome.name}</b> failed.
      </p>
    );
  const value = shownValue(cell);
  if (value?.kind === "model") return <ModelView model={value.model} graph={value.graph} />;
  if (value?.kind === "passes") return <PassesView cell={cell} run={value.run} />;
  if (value?.kind === "bundle")
    return <BundleView cell={cell} file={value.file} info={value.info} />;
  if (value?.kind === "bench")
    return (
      <BenchView cell={cell} result={value.result} isEarlier={outcome.state !== "done"} />
    );
  return null;
}

export function CellView({ cell }: { cell: Cell }) {
  const section = useRef<HTMLElement>(null);
  const isFocused = notebook.focused.value === cell.id;
  const isEditing = isFocused && notebook.editing.value && cell.kind !== "foreign";
  const outcome = cell.outcome.value;
  const isFolded = cell.folded.value;
  const place = notebook.indexOf(cell.id);

  // The focus follows the notebook's, but never leaves a control inside this cell.
  useEffect(() => {
    const { current } = section;
    if (!current || !isFocused || isEditing) return;
    const { activeElement } = document;
    const isInside = current.contains(activeElement) && activeElement?.closest(".editor") === null;
    if (isInside) return;
    current.focus({ preventScroll: true });
    current.scrollIntoView({ block: "nearest" });
  }, [isFocused, isEditing]);

  const edit = () => notebook.focus(cell.id, true);
  const isBusy = outcome.state === "running" || outcome.state === "waiting";
  return (
    <section
      ref={section}
      id={`cell-${cell.id}`}
      class={`cell ${cell.kind}${isFocused ? " focused" : ""}${isEditing ? " editing" : ""}`}
      tabIndex={isFocused ? 0 : -1}
      aria-label={`${kindWords[cell.kind]} cell ${place + 1} of ${notebook.cells.value.length}`}
      aria-busy={isBusy}
      onFocusIn={() => !isFocused && notebook.focus(cell.id)}
    >
      <div class="head">
        <button
          class="fold"
          aria-expanded={!isFolded}
          aria-label={isFolded ? "Unfold this cell" : "Fold this cell"}
          onClick={() => (cell.folded.value = !isFolded)}
        >
          {isFolded ? "▸" : "▾"}
        </button>
        <span class="kind">{kindWords[kindOf(cell)]}</span>
        {isCode(cell) && !isEditing && (
          <button class="source" title="Edit" onClick={edit}>
            <code>{cell.source.value || "(empty)"}</code>
          </button>
        )}
        {isCode(cell) && isEditing && <Editor cell={cell} />}
        {!isCode(cell) && <span class="space" />}
        <span class="status" role="status">
          {status(cell)}
        </span>
        {outcome.state === "running" && <Elapsed since={outcome.since} />}
        <span class="tools">
          {isCode(cell) && isBusy && <button onClick={() => cancel()}>Cancel</button>}
          {isCode(cell) && !isBusy && (
            <button onClick={() => void run(cell)} title="Run (Ctrl-Enter)">
              Run
            </button>
          )}
          {cell.kind === "markdown" && !isEditing && <button onClick={edit}>Edit</button>}
          <button
            aria-label="Move up"
            title="Move up"
            disabled={place === 0}
            onClick={() => notebook.move(cell.id, -1)}
          >
            ↑
          </button>
          <button
            aria-label="Move down"
            title="Move down"
            disabled={place === notebook.cells.value.length - 1}
            onClick={() => notebook.move(cell.id, 1)}
          >
            ↓
          </button>
          <button aria-label="Delete" title="Delete (D D)" onClick={() => notebook.remove(cell.id)}>
            ✕
          </button>
        </span>
      </div>
      {!isFolded && cell.kind === "markdown" && (
        <div class="text" onDblClick={edit}>
          {isEditing ? <Editor cell={cell} /> : <MarkdownView text={cell.source.value} />}
        </div>
      )}
      {!isFolded && <Output cell={cell} />}
    </section>
  );
}
