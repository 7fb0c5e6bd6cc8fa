// The launches of a measured run: what each takes beside what was predicted, and what it is bound
// by. A row opens to the kinds of kernels that it could have been.
import { useRef, useState } from "preact/hooks";
import { farFromLimit, isFar, type RunResult, type StepResult } from "../run/bench_result.ts";
import { Candidates, type Maker } from "./candidates.tsx";
import { bytes, milliseconds, percent } from "./quantities.ts";

const heads = [
  ["launch", ""],
  ["plan", "the kind of kernel that was chosen"],
  ["mean alone", "measured"],
  ["predicted", "by the prices that chose the plan"],
  ["share", "of all launches"],
  ["bound by", "what it is predicted to spend most time with"],
  ["of limit", "the time of its arithmetic at the peak, or of its bytes once, over its own"],
  ["GFLOP/s", ""],
  ["GB/s", ""],
  ["bytes", ""],
] as const;

function OfLimit({ step }: { step: StepResult }) {
  if (step.limit === undefined || step.mean <= 0) return <>–</>;
  const share = percent(step.limit / step.mean);
  if (!isFar(step)) return <>{share}</>;
  const why =
    `it takes more than ${farFromLimit} times the ${milliseconds(step.limit)} that its ` +
    "arithmetic at the peak, its bytes once, or a start would take";
  return (
    <span title={why}>
      <b class="bad far">!</b> {share}
      <span class="visually-hidden"> {why}</span>
    </span>
  );
}

interface RowProps {
  step: StepResult;
  place: number; // from 1
  share: number;
  maker: Maker | null;
  isChosen: boolean;
  choose(): void;
}

function Row({ step, place, share, maker, isChosen, choose }: RowProps) {
  const [isOpen, setOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const ms = Math.max(step.mean, 1e-9);
  return (
    <>
      <tr class={isChosen ? "selected" : ""}>
        <td>
          {step.region !== undefined && step.plan !== undefined && (
            <button
              ref={opener}
              class="fold"
              aria-expanded={isOpen}
              aria-label={`candidates of ${place}. ${step.label}`}
              title="what it could have been"
              onClick={() => setOpen(!isOpen)}
            >
              {isOpen ? "▾" : "▸"}
            </button>
          )}
          <button class="link" aria-pressed={isChosen} onClick={choose}>
            {place}. {step.label}
          </button>
        </td>
        <td class="mono">{step.plan ?? "–"}</td>
        <td>{milliseconds(step.mean)}</td>
        <td>{step.predicted === undefined ? "–" : milliseconds(step.predicted)}</td>
        <td>
          <span class="share" style={{ width: `${60 * share}px` }} />
          {percent(share)}
        </td>
        <td>{step.bound ?? "–"}</td>
        <td>
          <OfLimit step={step} />
        </td>
        <td>{step.flops > 0 ? (step.flops / ms / 1e6).toFixed(1) : "–"}</td>
        <td>{step.bytes > 0 ? (step.bytes / ms / 1e6).toFixed(1) : "–"}</td>
        <td>{bytes(step.bytes)}</td>
      </tr>
      {isOpen && step.region !== undefined && (
        <tr class="candidates">
          <td colSpan={heads.length}>
            <div>
              {maker ? (
                <Candidates
                  maker={maker}
                  region={step.region}
                  decided={() => opener.current?.focus()}
                />
              ) : (
                <p class="soft">
                  They are here once a passes cell above makes what was measured again.
                </p>
              )}
            </div>
          </td>
        </tr>
      )}
    </>
  );
}

export function KernelTable({
  run,
  maker,
  chosen,
  choose,
}: {
  run: RunResult;
  maker: Maker | null;
  chosen: number | null;
  choose(step: number): void;
}) {
  const sum = run.steps.reduce((all, { mean }) => all + mean, 0) || 1;
  return (
    <div class="table" role="region" aria-label="Kernels" tabIndex={0}>
      <table class="kernels">
        <thead>
          <tr>
            {heads.map(([head, meaning]) => (
              <th key={head} title={meaning}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {run.steps.map((step, i) => (
            <Row
              key={`${run.name} ${i}`}
              step={step}
              place={i + 1}
              share={step.mean / sum}
              maker={maker}
              isChosen={i === chosen}
              choose={() => choose(i)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}
