// A passes cell: its chips, and everything about the selected step.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Run } from "../engine/handle.ts";
import type { DiffInfo, PassInfo } from "../engine/protocol.ts";
import { GraphView } from "../graph/graph_view.tsx";
import type { Cell } from "../notebook/cell.ts";
import { catalogue } from "../notebook/catalogue.ts";
import { run as runCell } from "../notebook/evaluate.ts";
import * as force from "../source/force.ts";
import * as pipeline from "../source/pipeline.ts";
import { understand } from "../source/cell_code.ts";
import { quote } from "../source/parse.ts";
import { details, marksOf, mostTelling, sizeWords } from "./changes.ts";
import { Chips, type ChipStep } from "./chips.tsx";
import { DiffView } from "./diff_view.tsx";
import { Failure } from "./failure.tsx";
import { PassOptions } from "./pass_options.tsx";
import { Places } from "./places.tsx";
import { milliseconds, plural } from "./quantities.ts";
import { SizesView } from "./sizes_view.tsx";
import { TextView } from "./text_view.tsx";

// The chips of the text, each with the step that it became: steps that are on run in this order.
function stepsOf(chips: pipeline.Chip[], run: Run): ChipStep[] {
  let next = 1;
  let hasCulprit = false;
  return chips.map((chip) => {
    const info = chip.isOn ? (run.info.steps[next] ?? null) : null;
    const isIt = info !== null && info.pass === chip.pass;
    // The first that did not run, when something stopped it.
    const isCulprit = chip.isOn && !isIt && !hasCulprit && run.info.failed?.step === next;
    hasCulprit ||= isCulprit;
    return { ...chip, step: isIt ? next++ : null, info: isIt ? info : null, isCulprit };
  });
}

function useDiff(run: Run, step: number): { diff: DiffInfo; run: Run; step: number } | null {
  const [loaded, setLoaded] = useState<{ diff: DiffInfo; run: Run; step: number } | null>(null);
  useEffect(() => {
    let isOld = false;
    run
      .ask("diff", { step })
      .then((diff) => !isOld && setLoaded({ diff, run, step }))
      .catch(() => !isOld && setLoaded(null));
    return () => void (isOld = true);
  }, [run, step]);
  return loaded;
}

export function PassesView({ cell, run }: { cell: Cell; run: Run }) {
  const tab = useSignal<"diff" | "text">("diff");
  const code = understand(cell.source.value);
  const passesCode = code.ok && code.code.kind === "passes" ? code.code : null;
  const text = passesCode?.pipeline.value ?? run.info.passes;
  const known = catalogue.value;
  const chips = stepsOf(pipeline.chipsOf(text, known?.pipelines ?? []), run);
  const { steps } = run.info;
  const selected = Math.min(cell.selected.value ?? mostTelling(steps), steps.length - 1);
  const step = steps[selected];
  const loaded = useDiff(run, selected);
  const diff = loaded?.diff ?? null;
  const marks = useMemo(() => (diff ? marksOf(diff) : new Map()), [diff]);

  const rewrite = (to: string, select: number | null = null) => {
    if (!passesCode) return;
    const { from, to: end } = passesCode.pipeline;
    const source = cell.source.value;
    cell.source.value = source.slice(0, from) + quote(to) + source.slice(end);
    cell.selected.value = select;
    void runCell(cell);
  };
  const takeBack = (index: number) => {
    if (!passesCode) return;
    cell.source.value = force.undecided(cell.source.value, passesCode, index);
    void runCell(cell);
  };
  // A step keeps its place when the pipeline changes behind it.
  const kept = (index: number) => (selected <= index ? selected : null);

  const chipIndex = chips.findIndex((chip) => chip.step === selected);
  const pass = known?.passes.find(({ name }) => name === step?.pass);
  const why = chips[chipIndex]?.why;
  return (
    <div class="passes">
      <Chips
        chips={chips}
        selected={selected}
        select={(to) => (cell.selected.value = to)}
        toggle={(i) => rewrite(pipeline.toggled(text, chips, i), kept(i))}
        move={(from, to) => rewrite(pipeline.moved(chips, from, to))}
        remove={(i) => rewrite(pipeline.without(chips, i), kept(i))}
      />
      {passesCode && passesCode.force.length > 0 && (
        <ForceLines lines={passesCode.force.map(({ value }) => value)} takeBack={takeBack} />
      )}
      <div class="bar pad">
        <button aria-pressed={selected === 0} onClick={() => (cell.selected.value = 0)}>
          As imported
        </button>
        <button
          disabled={selected <= 0}
          onClick={() => (cell.selected.value = selected - 1)}
          aria-label="Previous step"
        >
          ← Previous
        </button>
        <button
          disabled={selected >= steps.length - 1}
          onClick={() => (cell.selected.value = selected + 1)}
          aria-label="Next step"
        >
          Next →
        </button>
        <span class="space" />
        <AddPass
          passes={known?.passes ?? []}
          add={(name) => rewrite(pipeline.inserted(chips, chipIndex < 0 ? 0 : chipIndex + 1, name))}
        />
      </div>
      {run.info.failed && (
        <Failure
          failure={{ message: run.info.failed.message, engine: run.info.failed }}
          source=""
        />
      )}
      {step && (
        <div class="step pad">
          <p>
            <b class="mono">{step.pass || "as imported"}</b> {pass && <span>{pass.summary}. </span>}
            {why && <span class="soft">Here {why}.</span>}
          </p>
          {selected > 0 && (
            <p class="soft">
              {[...details(step), `${milliseconds(step.milliseconds)} to run`].join(" · ")}
            </p>
          )}
          {pass && chipIndex >= 0 && pass.options.length > 0 && (
            <PassOptions
              key={`${pass.name} ${selected}`}
              pass={pass}
              values={step.options}
              change={(options) =>
                rewrite(pipeline.withOptions(chips, chipIndex, options), selected)
              }
            />
          )}
        </div>
      )}
      {step && step.hash === undefined && (
        <div class="pane program">
          {selected === steps.length - 1 && run.info.has_symbols && (
            <SizesView key={run} run={run} />
          )}
          <h3>Program after {step.pass}</h3>
          <TextView run={run} step={selected} />
        </div>
      )}
      {step && step.hash !== undefined && (
        <div class="split">
          <div class="pane">
            <h3>
              Graph after {step.pass || "import"}, {sizeWords(step.size_after)}
              {marks.size > 0 && `; ${marks.size} touched`}
            </h3>
            <GraphView
              run={run}
              step={selected}
              marks={marks}
              title={`graph after ${step.pass || "import"}`}
            />
          </div>
          <div class="pane">
            <div class="tabs" role="tablist">
              <button
                role="tab"
                aria-selected={tab.value === "diff"}
                onClick={() => (tab.value = "diff")}
              >
                What it changed
              </button>
              <button
                role="tab"
                aria-selected={tab.value === "text"}
                onClick={() => (tab.value = "text")}
              >
                Whole text
              </button>
            </div>
            {tab.value === "text" && <TextView run={run} step={selected} />}
            {tab.value === "diff" && selected === 0 && (
              <p class="soft pad">
                This is the graph as it was imported. Select a pass to see what it changed.
              </p>
            )}
            {tab.value === "diff" && selected > 0 && diff && <DiffView diff={diff} />}
          </div>
        </div>
      )}
      {step && step.refusals.length > 0 && (
        <details class="refusals pad" open={step.refusals.length <= 3}>
          <summary>{plural(step.refusals.length, "thing")} this pass left alone, and why</summary>
          {step.refusals.map((refusal, i) => (
            <div key={i} class="refusal">
              <p>
                <span aria-hidden="true">⊘ </span>
                {refusal.message}
              </p>
              <Places placed={refusal} table={run.info.table} />
            </div>
          ))}
        </details>
      )}
    </div>
  );
}

// What a person decided instead of the passes.
function ForceLines({ lines, takeBack }: { lines: string[]; takeBack(index: number): void }) {
  return (
    <ul class="force" aria-label="Decided instead of the passes">
      {lines.map((line, i) => (
        <li key={`${line} ${i}`}>
          <span class="soft">forced</span> <code>{line}</code>
          <button aria-label={`take back ${line}`} title="Take back" onClick={() => takeBack(i)}>
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

function AddPass({ passes, add }: { passes: PassInfo[]; add(name: string): void }) {
  return (
    <select
      aria-label="Add a pass behind the selected one"
      value=""
      onChange={(event) => {
        const name = event.currentTarget.value;
        event.currentTarget.value = "";
        if (name) add(name);
      }}
    >
      <option value="">Add a pass…</option>
      {passes.map(({ name, summary: text }) => (
        <option key={name} value={name} title={text}>
          {name}
        </option>
      ))}
    </select>
  );
}
