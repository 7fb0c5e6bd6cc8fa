"""The answer in a few sentences and figures: what a reader should know who reads nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lathe.report import estimates
from lathe.report.quantities import interval, milliseconds, plural, times
from lathe.report.results_file import FAILURES


@dataclass
class Card:
    """The fastest configuration of one backend."""

    backend: str
    line: object
    estimate: estimates.Estimate | None
    best: str  # model and speed-up
    worst: str


def cards(summary):
    """One for each backend that is not the baseline itself, the fastest first.

    All of them from the same machine and dtype as the fastest, where a backend ran there.
    """
    chosen = {}
    panel = next((line.configuration.panel for line in summary.lines), "")
    for line in sorted(summary.lines, key=lambda line: line.configuration.panel != panel):
        backend = str(line.configuration.settings.get("backend") or "unnamed backend")
        if backend != summary.baseline:
            chosen.setdefault(backend, line)
    return [_card(summary.baseline, backend, line) for backend, line in chosen.items()]


def sentences(summary):
    """Plain text, the most important first."""
    found = []
    best = [card for card in cards(summary) if card.estimate]
    for card in best[:1]:
        found.append(f"{_place(card, summary.baseline)}: {times(card.estimate.value)} as fast as "
                     f"{summary.baseline} ({_interval(card.estimate)}), the geometric mean over "
                     f"{plural(card.estimate.count, 'model')}.")
        found += [_against(summary.baseline, card, other) for other in best[1:4]]
    found.append(_passed(summary.measured))
    first = best[0].line.first_call_ms if best else None
    if first:
        warm = best[0].line.warm_first_call_ms
        found.append(f"Its first call takes {milliseconds(first.median)} (median of "
                     f"{plural(first.count, 'model')})"
                     + (f", and {milliseconds(warm.median)} with warm caches." if warm else "."))
    return [sentence for sentence in found if sentence]


def failure_counts(rows):
    """`3 timed out, 1 crashed`."""
    counts = Counter(row.status for row in rows if not row.passed)
    return ", ".join(f"{count:,} {FAILURES.get(status, status)}"
                     for status, count in counts.most_common())


def _place(card, baseline):
    """What the best of all is, which need not be fast."""
    label, estimate = card.line.configuration.label, card.estimate
    if estimate.low is None:
        return f"{label} comes first"
    if estimate.high < 1:
        return f"Nothing is as fast as {baseline}; {label} comes nearest"
    if estimate.low <= 1:
        return f"{label} comes first, but cannot be told from {baseline}"
    return f"{label} is the fastest"


def _passed(measured):
    rows = [one.row for one in measured]
    passed = sum(row.passed for row in rows)
    failed = failure_counts(rows)
    return f"{passed:,} of {plural(len(rows), 'row')} passed" + (f"; {failed}." if failed else ".")


def _interval(estimate):
    if estimate.low is None:
        return f"no interval: {estimate.why_no_interval}"
    return f"95 % interval {interval(estimate)}"


def _card(baseline, backend, line):
    rated = [one for one in line.measured if one.row.passed and baseline in one.speedups]
    rated.sort(key=lambda one: one.speedups[baseline].value)
    words = [f"{one.model} {times(one.speedups[baseline].value)}" for one in rated]
    return Card(backend, line, line.speedups.get(baseline) if baseline else None,
                words[-1] if words else "", words[0] if words else "")


def _against(baseline, card, other):
    """The fastest configurations of two backends, over the models that both passed."""
    if card.line.configuration.panel != other.line.configuration.panel:
        return ""
    theirs = {one.model: one for one in other.line.measured
              if one.row.passed and baseline in one.speedups}
    ratios = [estimates.quotient(one.speedups[baseline], theirs[one.model].speedups[baseline])
              for one in card.line.measured
              if one.row.passed and baseline in one.speedups and one.model in theirs]
    label = other.line.configuration.label
    both = estimates.over_models(ratios, f"{card.backend} against {other.backend}")
    if both is None:
        return ""
    return (f"Against {label} it is {times(both.value)} as fast ({_interval(both)}), over the "
            f"{plural(both.count, 'model')} that both pass.")
