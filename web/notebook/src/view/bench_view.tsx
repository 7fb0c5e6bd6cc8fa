// A bench: the whole runs beside each other, then the launches of one, and of the chosen launch its
// lines of Python, its loop IR and its WebAssembly.
import { useEffect, useState } from "preact/hooks";
import type { Run } from "../engine/handle.ts";
import type { Place, Placed, ProgramInfo } from "../engine/protocol.ts";
import { valueOf, type Cell } from "../notebook/cell.ts";
import { changedSince } from "../notebook/changed.ts";
import { cells } from "../notebook/notebook.ts";
import {
  farFromLimit,
  type BenchResult,
  type Spread,
  type StepResult,
} from "../run/bench_result.ts";
import { functionIn } from "../source/kernel_names.ts";
import type { Maker } from "./candidates.tsx";
import { CheckWord } from "./check_word.tsx";
import { KernelTable } from "./kernel_table.tsx";
import { LinkedCode } from "./linked_code.tsx";
import { Places } from "./places.tsx";
import { browserName, bytes, milliseconds, moment, plural } from "./quantities.ts";

const spreadText = ({ low, high }: Spread) => `${milliseconds(low)} to ${milliseconds(high)}`;

function Totals({
  result,
  changed,
  chosen,
  choose,
}: {
  result: BenchResult;
  changed: string[];
  chosen: number;
  choose(run: number): void;
}) {
  const base = result.runs.at(-1)?.total.median ?? 1;
  const hasBase = result.runs.length > 1;
  const last = result.runs.at(-1)?.name ?? "";
  return (
    <table class="totals">
      <thead>
        <tr>
          <th>passes</th>
          <th>median</th>
          <th>10th to 90th percentile</th>
          {hasBase && <th>against {last}</th>}
          <th>launches</th>
          <th>memory</th>
          <th>result</th>
        </tr>
      </thead>
      <tbody>
        {result.runs.map((run, i) => (
          <tr key={i} class={i === chosen ? "selected" : ""}>
            <td>
              <button class="link" aria-pressed={i === chosen} onClick={() => choose(i)}>
                {run.name}
              </button>
              {changed.includes(run.name) && <span class="soft"> as it was</span>}
            </td>
            <td>
              {milliseconds(run.total.median)}
              {!run.settled && " (unsettled)"}
            </td>
            <td>{spreadText(run.total)}</td>
            {hasBase && <td>{(base / run.total.median).toFixed(2)}×</td>}
            <td>{run.steps.length}</td>
            <td>{bytes(run.memory_bytes)}</td>
            <td>
              <CheckWord check={run.check} isOld={changed.includes(run.name)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface Code {
  loops: string;
  wat: string;
  placed: Placed;
  table: Place[];
}

// The passes above may have been compiled again since `measured` was.
async function codeOf(run: Run, step: number, measured: StepResult): Promise<Code> {
  const program: ProgramInfo = await run.ask("program", {});
  const launch = program.steps[step];
  const table = program.table;
  if (launch?.label !== measured.label)
    throw new Error(
      `the passes above no longer make ${measured.label} at this place; run this cell again`,
    );
  if (launch.kernel === undefined)
    return { loops: `a ${launch.kind}: no loops`, wat: "", placed: launch, table };
  const { text } = await run.ask("kernel", { kernel: launch.kernel });
  const wat = await run.ask("emit", { what: "wat" });
  const body = functionIn(wat.text ?? "", `k${launch.kernel}`);
  return { loops: text, wat: body || (wat.text ?? ""), placed: launch, table };
}

function KernelCode({ run, step, measured }: { run: Run; step: number; measured: StepResult }) {
  const [code, setCode] = useState<Code | null>(null);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    let isOld = false;
    codeOf(run, step, measured)
      .then((next) => !isOld && (setCode(next), setFailure("")))
      .catch((error: unknown) => !isOld && setFailure((error as Error).message));
    return () => void (isOld = true);
  }, [run, step, measured]);
  if (failure)
    return (
      <p class="failure" role="alert">
        {failure}
      </p>
    );
  if (!code) return null;
  return (
    <div class="kernel-code">
      <h3>Python</h3>
      <div class="pad">
        <Places placed={code.placed} table={code.table} />
      </div>
      <LinkedCode loops={code.loops} wat={code.wat} />
    </div>
  );
}

function When({ result }: { result: BenchResult }) {
  return (
    <>
      <time dateTime={result.when}>{moment(new Date(result.when))}</time> with{" "}
      <span title={result.agent}>{browserName(result.agent)}</span>
    </>
  );
}

// The cell that makes the passes value of a name, while it is made.
function makerOf(name: string): Maker | null {
  for (const cell of cells.value) {
    const value = valueOf(cell);
    if (value?.kind === "passes" && value.name === name) return { cell, run: value.run };
  }
  return null;
}

export function BenchView({
  cell,
  result,
  isEarlier,
}: {
  cell: Cell;
  result: BenchResult;
  isEarlier: boolean;
}) {
  const [at, setAt] = useState(0);
  const step = cell.selected.value;
  const chosen = Math.min(at, result.runs.length - 1);
  const run = result.runs[chosen];
  if (!run) return null;
  const measured = step === null ? undefined : run.steps[step];
  const changed = changedSince(cell, result);
  const alone = run.steps.reduce((all, { mean }) => all + mean, 0);
  const maker = makerOf(run.name);
  const hasPrices = run.steps.some(({ predicted }) => predicted !== undefined);
  return (
    <div class="bench">
      {isEarlier && (
        <p class="earlier">
          <span aria-hidden="true">↺ </span>
          <b>Measured earlier</b>, <When result={result} />. Run the cell to measure here and now.
        </p>
      )}
      {!isEarlier && changed.length > 0 && (
        <p class="earlier" role="status">
          <span aria-hidden="true">↺ </span>
          <b>Measured before {changed.join(" and ")} changed.</b> Run the cell to measure what
          stands above now.
        </p>
      )}
      <div class="table" role="region" aria-label="Whole runs" tabIndex={0}>
        <Totals
          result={result}
          changed={changed}
          chosen={chosen}
          choose={(i) => (setAt(i), (cell.selected.value = null))}
        />
      </div>
      <p class="soft pad">
        {!isEarlier && (
          <>
            Measured <When result={result} />.{" "}
          </>
        )}
        One thread, {result.isa}, inputs from random:{result.seed}
        {result.weights && `, weights from ${result.weights}`}.{" "}
        {plural(run.samples.length, "sample")} of {run.name}. A launch's time is the mean of calling
        it alone, the call and a coarse clock included: all of them together take{" "}
        {milliseconds(alone)}, a whole run {milliseconds(run.total.median)}.
        {hasPrices && (
          <>
            {" "}
            What is predicted, and the limit, is of a core of {result.gigahertz} GHz, which may not
            be yours. <b class="bad">!</b> is more than {farFromLimit} times from its limit.
          </>
        )}
      </p>
      <KernelTable
        run={run}
        maker={maker}
        chosen={step}
        choose={(i) => (cell.selected.value = i)}
      />
      {step !== null && measured && maker && (
        <KernelCode run={maker.run} step={step} measured={measured} />
      )}
      {measured && !maker && (
        <p class="soft pad">
          The code of {measured.label} is here once a passes cell above makes {run.name} again.
        </p>
      )}
    </div>
  );
}
