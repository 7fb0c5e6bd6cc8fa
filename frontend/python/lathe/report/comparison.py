"""What became faster, slower, broke or was mended since an earlier results file.

Rows with equal settings meet. What is compared is the speed-up over the same baseline, so that
another machine or a busier day does not pass for a change of the compiler. Of many comparisons some
look like changes by chance: the false discovery rate is held at 5 %, and changes under 3 % are not
called changes, since two processes that run the same program can differ by that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lathe.report import estimates
from lathe.report.results_file import settings_key

SMALLEST_CHANGE = 0.03


@dataclass
class Change:
    """One row in both files. The ratio is speed-up now / before, above 1 where it became faster."""

    now: object
    before: object
    ratio: estimates.Estimate | None
    verdict: str  # faster, slower, same, broke, mended, failing, incomparable


@dataclass
class Comparison:
    earlier: object
    changes: list[Change]
    geomean: estimates.Estimate | None
    configurations: list[tuple[str, estimates.Estimate]]  # by name, the most improved first
    compile_ratio: estimates.Estimate | None  # first call now / before, above 1 where it is slower
    added: int
    gone: int
    notes: list[str]

    def of(self, verdict):
        """Those changes, the largest first."""
        found = [change for change in self.changes if change.verdict == verdict]
        return sorted(found, key=lambda c: -abs(np.log(c.ratio.value)) if c.ratio else 0)


def compare(now, earlier):
    """Two summaries."""
    before = {_key(one): one for one in earlier.measured}
    changes = [_change(one, before[_key(one)], now.baselines) for one in now.measured
               if _key(one) in before]
    rated = [change for change in changes if change.ratio]
    stands = estimates.discoveries([estimates.chance_of_no_change(c.ratio) for c in rated])
    for change, is_change in zip(rated, stands):
        if is_change and abs(np.log(change.ratio.value)) > np.log1p(SMALLEST_CHANGE):
            change.verdict = "faster" if change.ratio.value > 1 else "slower"
    first_calls = {}
    for c in rated:
        if c.now.row.first_call_ms and c.before.row.first_call_ms:
            ratio = estimates.exactly(c.now.row.first_call_ms / c.before.row.first_call_ms)
            first_calls.setdefault(c.now.model, []).append(ratio)
    keys = {_key(one) for one in now.measured}
    by_model, by_configuration = {}, {}
    for change in rated:
        by_model.setdefault(change.now.model, []).append(change.ratio)
        by_configuration.setdefault(change.now.configuration.label, []).append(change.ratio)
    configurations = [(label, estimates.over_models(ratios, f"comparison {label}"))
                      for label, ratios in by_configuration.items()]
    return Comparison(
        earlier, changes, estimates.by_model(by_model, "comparison"),
        sorted(configurations, key=lambda pair: -pair[1].value),
        estimates.by_model(first_calls, "first calls"),
        len(keys - before.keys()), len(before.keys() - keys), _notes(now, earlier, changes))


def _key(one):
    return one.row.model, one.row.source, settings_key(one.row.settings)


def _change(one, old, baselines):
    if one.row.passed != old.row.passed:
        return Change(one, old, None, "mended" if one.row.passed else "broke")
    if not one.row.passed:
        return Change(one, old, None, "failing")
    shared = next((b for b in baselines if b in one.speedups and b in old.speedups), None)
    if shared is None:
        return Change(one, old, None, "incomparable")
    return Change(one, old, estimates.quotient(one.speedups[shared], old.speedups[shared]), "same")


def _notes(now, earlier, changes):
    notes = []
    cpus = [{str(e.get("cpu")) for e in s.results.environments.values()} for s in (now, earlier)]
    if cpus[0] != cpus[1]:
        notes.append(f"The processors differ: {', '.join(sorted(cpus[1])) or 'unknown'} before, "
                     f"{', '.join(sorted(cpus[0])) or 'unknown'} now. Speed-ups over the baseline "
                     "are compared, but another processor may favour either side.")
    incomparable = sum(change.verdict == "incomparable" for change in changes)
    if incomparable:
        notes.append(f"{incomparable:,} rows passed in both files but share no baseline; nothing "
                     "is said of their speed.")
    return notes
