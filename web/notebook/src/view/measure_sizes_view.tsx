// A button that times a program at several sizes, and what came out in words.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Run } from "../engine/handle.ts";
import type { Dims, SizePoint } from "../engine/protocol.ts";
import { inTurn } from "../notebook/evaluate.ts";
import { sizesToMeasure } from "../run/choose_sizes.ts";
import { measureSizes, type SizesMeasured } from "../run/measure_sizes.ts";
import { CheckWord } from "./check_word.tsx";
import { milliseconds, plural } from "./quantities.ts";

export interface Measuring {
  measured: SizesMeasured | null;
  left: number; // of the sizes that are measured now
  failure: string;
  start(dims: Dims, along: string, here: number, curve: SizePoint[]): void;
  stop(): void;
}

const nothing = { measured: null, left: 0, failure: "" };

// What was measured holds as long as `key`: the program, and the sizes that do not move.
export function useMeasuring(run: Run, key: string): Measuring {
  const [state, setState] = useState<Omit<Measuring, "start" | "stop">>(nothing);
  const stopper = useRef<AbortController | null>(null);
  const stop = () => stopper.current?.abort();
  useEffect(() => {
    setState(nothing);
    return stop;
  }, [run, key]);
  const start: Measuring["start"] = (dims, along, here, curve) => {
    stop();
    const mine = new AbortController();
    stopper.current = mine;
    const { signal } = mine;
    const sizes = sizesToMeasure(curve, here);
    const isMine = () => stopper.current === mine && !signal.aborted;
    const report = (measured: SizesMeasured) =>
      isMine() && setState({ measured, left: sizes.length - measured.points.length, failure: "" });
    setState({ measured: null, left: sizes.length, failure: "" });
    inTurn(() => measureSizes(run, dims, along, sizes, report, signal)).catch((error: unknown) => {
      const failure = (error as Error).message;
      if (isMine()) setState(({ measured }) => ({ measured, left: 0, failure }));
    });
    // A person's stop leaves what is there.
    signal.addEventListener("abort", () => setState((old) => ({ ...old, left: 0 })));
  };
  return { ...state, start, stop };
}

export function MeasureSizes({
  measuring,
  canStart,
  start,
}: {
  measuring: Measuring;
  canStart: boolean;
  start(): void;
}) {
  const { measured, left, failure, stop } = measuring;
  const first = measured?.points[0];
  return (
    <div class="measure">
      {left > 0 ? (
        <button onClick={stop}>Stop</button>
      ) : (
        <button disabled={!canStart} onClick={start}>
          {measured ? "Measure again" : "Measure"}
        </button>
      )}
      <span class="soft" role="status">
        {left > 0
          ? `${plural(left, "size")} left`
          : !measured && "times this size and others here, on one thread"}
      </span>
      {first && (
        <p>
          <b>{milliseconds(first.time.median)}</b> at {first.size},{" "}
          {measured.fixed && (
            <>
              <b>{milliseconds(measured.fixed.median)}</b> compiled for {first.size} alone;{" "}
            </>
          )}
          {measured.check && <CheckWord check={measured.check} isOld={false} />}
        </p>
      )}
      {failure && (
        <p class="bad" role="alert">
          {failure}
        </p>
      )}
    </div>
  );
}
