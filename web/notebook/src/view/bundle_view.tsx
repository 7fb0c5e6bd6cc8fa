// A bundle of lathe.capture: beside each other the graphs of a frame and the user's line that broke
// them, then the recompiles, each with its one cause.
import { useMemo, useState } from "preact/hooks";
import type {
  BundleInfo,
  CapturedCompile,
  CapturedFrame,
  GraphBreak,
  RecompileCause,
} from "../engine/bundle_info.ts";
import * as notebook from "../notebook/notebook.ts";
import type { Cell } from "../notebook/cell.ts";
import { openModel } from "../notebook/opening.ts";
import {
  bundleSummary,
  dedented,
  frameText,
  inputsText,
  listed,
  placeOf,
  rowsOf,
  type BundleRow,
} from "./bundle_rows.ts";
import { milliseconds, plural } from "./quantities.ts";
import { LongText } from "./text_view.tsx";

const mostRows = 40; // at first, and with every wish for more

// A text that is made into elements when somebody opens it.
function Folded({ summary, text }: { summary: string; text: string }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && <LongText text={text} label={summary} />}
    </details>
  );
}

// How many guards a text of PyTorch's has: rows of managers say where, not what.
const guardsIn = (text: string) =>
  text.split("\n").filter((line) => /^[| ]*\+- (?!\w*GuardManager\b)/.test(line)).length;

function Graph({ compile, open }: { compile: CapturedCompile; open(entry: string): void }) {
  const { id, graph, guards, failure, call, seconds } = compile;
  const facts = [
    graph ? plural(graph.ops, "op") : "no graph: nothing to compute",
    ...(call === undefined ? [] : [`call ${call}`]),
    ...(seconds === undefined ? [] : [`compiled in ${milliseconds(seconds * 1000)}`]),
  ];
  const entry = graph?.entry;
  return (
    <div class="captured">
      <p>
        <b class="mono">{id}</b> <span class="soft">{facts.join(" · ")}</span>
        {entry && (
          <button onClick={() => open(entry)} aria-label={`Open graph ${id} as a model`}>
            Open as a model
          </button>
        )}
      </p>
      {failure && <p class="bad">Not compiled: {failure}</p>}
      {graph?.refused && <p class="soft">It cannot be opened as a model: {graph.refused}</p>}
      {graph && graph.inputs.length > 0 && (
        <p class="soft sources">
          takes <code>{inputsText(graph.inputs)}</code>
        </p>
      )}
      {graph?.python && <Folded summary={`Python of ${id}`} text={graph.python} />}
      {guards && (
        <Folded
          summary={`${plural(guardsIn(guards), "guard")} of ${id}, as PyTorch prints them`}
          text={guards}
        />
      )}
    </div>
  );
}

function Lines({ broke }: { broke: GraphBreak }) {
  const width = String(Math.max(...broke.lines.map(({ line }) => line))).length;
  return (
    <pre class="user-lines" role="region" tabIndex={0} aria-label={`Lines around ${broke.line}`}>
      {dedented(broke.lines).map(({ line, code }) => {
        const isIt = line === broke.line;
        return (
          <span key={line} class={isIt ? "line broke" : "line"}>
            <span class="number">
              <span aria-hidden="true">{isIt ? "▸" : " "}</span>
              {isIt && <span class="visually-hidden">it broke here: </span>}
              {String(line).padStart(width)}
            </span>
            {"  "}
            {code}
            {"\n"}
          </span>
        );
      })}
    </pre>
  );
}

function Break({ broke, number }: { broke: GraphBreak; number: number }) {
  const [hint, ...hints] = broke.hints;
  return (
    <>
      <p>
        <b>Break {number}</b> at <b class="mono place">{placeOf(broke)}</b>: {broke.reason}
      </p>
      <Lines broke={broke} />
      {hint && <p class="hint">Hint: {hint}</p>}
      {(broke.explanation || hints.length > 0 || broke.url) && (
        <details>
          <summary>Explanation{hints.length > 0 && ` and ${plural(hints.length, "hint")}`}</summary>
          <p class="explanation">{broke.explanation}</p>
          {hints.length > 0 && (
            <ul>
              {hints.map((text, i) => (
                <li key={i}>{text}</li>
              ))}
            </ul>
          )}
          {broke.url.startsWith("https://") && (
            <p>
              <a href={broke.url} target="_blank" rel="noreferrer">
                What PyTorch says of it
              </a>
            </p>
          )}
        </details>
      )}
    </>
  );
}

function Row({ row, open }: { row: BundleRow; open(entry: string): void }) {
  const [first] = row.compiles;
  const ends = first?.graph?.ends === "return" ? "Returns." : "Ends without a break.";
  return (
    <li class="row">
      <div class="graphs">
        <h4>
          {frameText(row.frame)}{" "}
          <span class="mono">{row.frame ? placeOf(row.frame) : ""}</span>
        </h4>
        {row.compiles.map((compile) => (
          <Graph key={compile.id} compile={compile} open={open} />
        ))}
      </div>
      <div class="end">
        {row.end ? <Break {...row.end} /> : <p class="soft">{first?.failure ? "" : ends}</p>}
      </div>
    </li>
  );
}

function Recompile({ cause, frame }: { cause: RecompileCause; frame: CapturedFrame | null }) {
  const { id, call, kind, reason, reasons, follow, file, line, code } = cause;
  const place = line === undefined ? frame : { file: file ?? "", line };
  return (
    <li>
      <p>
        Call {call} compiled <b class="mono">{id}</b> ({kind}): <code>{reason}</code>
        {follow.length > 0 && <span class="soft">, and for it {listed(follow)}</span>}
      </p>
      {place && (
        <p class="soft">
          <b class="mono">{placeOf(place)}</b> <code>{code ?? frameText(frame)}</code>
        </p>
      )}
      {reasons.length > 1 && (
        <Folded summary={`All ${reasons.length} reasons`} text={reasons.join("\n\n")} />
      )}
    </li>
  );
}

export function BundleView({
  cell,
  file,
  info,
}: {
  cell: Cell;
  file: string;
  info: BundleInfo;
}) {
  const [shown, setShown] = useState(mostRows);
  const rows = useMemo(() => rowsOf(info), [info]);
  const open = (entry: string) => void openModel(`${file}/${entry}`, notebook.indexOf(cell.id) + 1);
  return (
    <div class="bundle">
      <p class="pad">
        <b>{info.model}</b>: {bundleSummary(info)}.{" "}
        <span class="soft">
          Captured by {info.origin} of torch {info.torch} in {plural(info.calls, "call")}.
        </span>
      </p>
      <h3>Graphs, and the lines that broke them</h3>
      <ol class="rows" aria-label="Graphs, and the lines that broke them">
        {rows.slice(0, shown).map((row, i) => (
          <Row key={i} row={row} open={open} />
        ))}
      </ol>
      {rows.length > shown && (
        <p class="pad">
          <button onClick={() => setShown(shown + mostRows)}>
            Show more ({rows.length - shown} are left)
          </button>
        </p>
      )}
      {info.recompiles.length > 0 && (
        <>
          <h3>Recompiles, each with its cause</h3>
          <ol class="causes" aria-label="Recompiles, each with its cause">
            {info.recompiles.map((cause) => (
              <Recompile
                key={cause.id}
                cause={cause}
                frame={info.frames.find(({ frame }) => frame === cause.frame) ?? null}
              />
            ))}
          </ol>
        </>
      )}
    </div>
  );
}
