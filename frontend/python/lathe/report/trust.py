"""What a reader cannot rely on, as sentences: what the file lost, and what the figures lack."""

from __future__ import annotations

from collections import Counter

import numpy as np

from lathe.report import estimates
from lathe.report.quantities import plural, times
from lathe.report.results_file import FAILURES

_WIDE = 1.25  # 90th over 10th percentile of a row's samples


def doubts(summary):
    """Sentences, the gravest first."""
    results, measured = summary.results, summary.measured
    found = list(results.troubles)
    found += _unfinished(results)
    found += _baselines(summary)
    found += _environments(results, measured)
    found += _samples(measured)
    found += _eager_against_itself(measured)
    unknown = Counter(one.row.status for one in measured
                      if not one.row.passed and one.row.status not in FAILURES)
    if unknown:
        words = ", ".join(f"'{status}'" for status in list(unknown)[:3])
        found.append(f"{plural(unknown.total(), 'row')} with a status that version 1 does not "
                     f"have ({words}); counted as failed.")
    return found


def _unfinished(results):
    if results.jobs is None or results.jobs <= len(results.rows):
        return []
    missing = results.jobs - len(results.rows)
    return [f"The sweep is not finished: {missing:,} of {plural(results.jobs, 'job')} have no row "
            "yet. Run the same sweep to go on."]


def _baselines(summary):
    if not summary.baselines:
        return ["No row holds samples of what it is compared with, so there is no speed-up at "
                "all; times alone are shown."]
    lacking = sum(one.row.passed and summary.baseline not in one.speedups
                  for one in summary.measured)
    if not lacking:
        return []
    return [f"{plural(lacking, 'row')} passed without pairs with {summary.baseline}: counted in "
            "pass rates, and in no speed-up."]


def _environments(results, measured):
    found = []
    used = Counter(one.row.environment for one in measured)
    unknown = sum(count for key, count in used.items() if key not in results.environments)
    if unknown:
        found.append(f"{plural(unknown, 'row')} from an environment that the file does not "
                     "describe.")
    known = [results.environments[key] for key in used if key in results.environments]
    for field, words in (("cpu", "processors"), ("gpu", "GPUs"), ("lathe", "builds of Lathe")):
        values = sorted({str(e.get(field) or "none") for e in known})
        if len(values) > 1:
            found.append(f"Rows come from {len(values)} {words} ({', '.join(values)}); means over "
                         "them mix what should be compared apart.")
    crowded = sum(_threads(one) > _cores(results, one) for one in measured)
    if crowded:
        found.append(f"{plural(crowded, 'row')} used more threads than their machine has cores.")
    return found


def _threads(one):
    threads = one.row.settings.get("threads")
    return threads if isinstance(threads, (int, float)) else 0


def _cores(results, one):
    cores = results.environments.get(one.row.environment, {}).get("cores")
    return cores if isinstance(cores, (int, float)) else float("inf")


def _samples(measured):
    found = []
    passed = [one for one in measured if one.row.passed]
    few = [one for one in passed if one.speedups
           and min(e.count for e in one.speedups.values()) < estimates.FEWEST_PAIRS]
    if few:
        found.append(f"{plural(len(few), 'row')} with fewer than {estimates.FEWEST_PAIRS} pairs: "
                     "such a speed-up has no interval.")
    none = sum(one.median_ms is None for one in passed)
    if none:
        found.append(f"{plural(none, 'row')} passed without a single usable sample.")
    dropped = sum(one.unpaired for one in measured)
    if dropped:
        found.append(f"{plural(dropped, 'sample')} without a partner, or no positive number, were "
                     "left out of the pairs.")
    wide = sum(one.spread_ms is not None and one.spread_ms[1] > _WIDE * one.spread_ms[0]
               for one in passed)
    if wide:
        found.append(f"{plural(wide, 'row')} with a 90th percentile of more than {_WIDE} times "
                     "the 10th: the machine was busy, or the program itself varies.")
    again = sum((one.row.attempts or 1) > 1 for one in measured)
    if again:
        found.append(f"{plural(again, 'row')} took more than one attempt.")
    return found


def _eager_against_itself(measured):
    """A candidate that is its own baseline shows what the method itself gets wrong."""
    same = [one.speedups["eager"] for one in measured
            if one.row.settings.get("backend") == "eager" and "eager" in one.speedups]
    if not same:
        return []
    worst = max(same, key=lambda e: abs(np.log(e.value)))
    missed = sum(e.low is not None and not e.low <= 1 <= e.high for e in same)
    return [f"Eager against itself, {plural(len(same), 'row')}: the farthest from 1 is "
            f"{times(worst.value)}, and {missed:,} intervals of 95 % miss 1 (about "
            f"{0.05 * len(same):.1f} are expected to)."]
