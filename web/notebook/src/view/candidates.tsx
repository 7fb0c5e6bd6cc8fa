// The kinds of kernels that a region could be: what each was predicted to take, or why it is none.
// One of them can be asked for: that is a line in the text of the passes cell.
import { useEffect, useState } from "preact/hooks";
import type { Run } from "../engine/handle.ts";
import type { Candidate, LaunchInfo, Place } from "../engine/protocol.ts";
import type { Cell } from "../notebook/cell.ts";
import { run as runCell } from "../notebook/evaluate.ts";
import { say } from "../notebook/notebook.ts";
import { understand } from "../source/cell_code.ts";
import * as force from "../source/force.ts";
import { Places } from "./places.tsx";
import { milliseconds } from "./quantities.ts";

// The passes cell that makes what was measured, and its run.
export interface Maker {
  cell: Cell;
  run: Run;
}

interface Chosen {
  launch: LaunchInfo; // the first of the region
  count: number; // of its launches, which prices are of
  table: Place[];
}

// Of the passes as they are now: null while they are asked, a word when they make it no more.
function useChosen(run: Run, region: string): Chosen | string | null {
  const [chosen, setChosen] = useState<Chosen | string | null>(null);
  useEffect(() => {
    let isOld = false;
    run
      .ask("program", {})
      .then(({ steps, table }) => {
        const launches = steps.filter((one) => one.region === region);
        const [launch] = launches;
        const gone = `the passes above no longer make ${region}; run this cell again`;
        if (!isOld) setChosen(launch ? { launch, count: launches.length, table } : gone);
      })
      .catch((error: unknown) => !isOld && setChosen((error as Error).message));
    return () => void (isOld = true);
  }, [run, region]);
  return chosen;
}

// Those with a price, the cheapest first, then the others.
function ordered(candidates: Candidate[]): Candidate[] {
  const rank = ({ why_not, predicted }: Candidate) => (why_not ? Infinity : (predicted ?? 0));
  return [...candidates].sort((a, b) => (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0));
}

function verdict(candidate: Candidate, chosen: Candidate | undefined, isForced: boolean): string {
  if (candidate === chosen) return isForced ? "chosen, as asked" : "chosen";
  if (candidate.why_not) return candidate.why_not;
  const own = chosen?.predicted;
  if (!own || candidate.predicted === undefined) return "";
  return `${(candidate.predicted / own).toFixed(2)} times what is chosen`;
}

export function Candidates({
  maker,
  region,
  decided,
}: {
  maker: Maker;
  region: string;
  decided(): void; // before the button that was pressed goes
}) {
  const { cell, run } = maker;
  const shown = useChosen(run, region);
  if (shown === null) return null;
  if (typeof shown === "string")
    return (
      <p class="failure" role="alert">
        {shown}
      </p>
    );
  const { launch, count, table } = shown;
  const candidates = ordered(launch.candidates ?? []);
  const chosen = candidates.find(({ plan }) => plan === launch.plan);
  const understood = understand(cell.source.value);
  const code = understood.ok && understood.code.kind === "passes" ? understood.code : null;
  const decide = (lines: string[], word: string) => {
    if (!code) return;
    decided();
    cell.source.value = force.decided(cell.source.value, code, region, lines);
    void runCell(cell);
    say(`${region}: ${word}; run the bench to measure it`);
  };
  return (
    <>
      <p class="soft">
        <span class="mono">{region}</span>
        {count > 1 && `, ${count} launches together,`}{" "}
        {candidates.length > 1 ? "could be" : "can only be"}
      </p>
      <table>
        <tbody>
          {candidates.map((candidate) => {
            const { plan, predicted, force: lines } = candidate;
            return (
              <tr key={plan} class={candidate === chosen ? "chosen" : ""}>
                <td class="mono">
                  <span class="sign" aria-hidden="true">
                    {candidate === chosen ? "✓" : ""}
                  </span>
                  {plan}
                </td>
                <td>{predicted === undefined ? "–" : milliseconds(1e3 * predicted)}</td>
                <td class="why">{verdict(candidate, chosen, launch.forced === true)}</td>
                <td>
                  {code && lines && candidate !== chosen && (
                    <button
                      title={lines.join(", ")}
                      onClick={() => decide(lines, lines.join(", "))}
                    >
                      Use this
                    </button>
                  )}
                  {code && candidate === chosen && force.isDecided(code, region) && (
                    <button onClick={() => decide([], "as the prices choose")}>Take back</button>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <Places placed={launch} table={table} />
    </>
  );
}
