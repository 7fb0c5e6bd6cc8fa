// Whether results agree with the interpreter's.
import type { RunResult } from "../run/bench_result.ts";

export function CheckWord({ check, isOld }: { check: RunResult["check"]; isOld: boolean }) {
  if ("skipped" in check) return <span class="why">– not checked: {check.skipped}</span>;
  const error = check.max_abs_error;
  const size = error === null ? "" : `, largest error ${error.toExponential(1)}`;
  if (check.passed) return <span>{isOld ? `agreed then${size}` : `✓ agrees${size}`}</span>;
  return (
    <span class="bad why">
      ✗ {isOld ? "differed then" : "differs"}
      {size}: {check.why}
    </span>
  );
}
