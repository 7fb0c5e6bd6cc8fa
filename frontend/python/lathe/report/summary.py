"""The figures of each configuration: speed-up, pass rate, compile time, memory, accuracy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from lathe.report import configurations, estimates


@dataclass
class Measured:
    """A row with its speed-ups over each that it stands against."""

    row: object
    number: int  # its place in the page
    model: str
    configuration: configurations.Configuration
    speedups: dict[str, estimates.Estimate]
    unpaired: int  # samples that have no partner or are no positive number
    median_ms: float | None
    spread_ms: tuple[float, float] | None  # 10th and 90th percentile


@dataclass
class Spread:
    """Of several values: median, extremes, and how many there are."""

    median: float
    low: float
    high: float
    mean: float
    count: int


@dataclass
class Line:
    """One configuration's figures; None where nothing was measured."""

    configuration: configurations.Configuration
    measured: list[Measured]
    passed: int
    failures: Counter
    speedups: dict[str, estimates.Estimate | None]  # geometric means over models
    clamped: float | None  # as PyTorch's dashboard: slow-downs count as 1
    first_call_ms: Spread | None
    warm_first_call_ms: Spread | None
    compile_ms: Spread | None
    memory: estimates.Estimate | None  # baseline's peak / candidate's
    worst: Measured | None  # by error over tolerance
    fallbacks: int | None
    graph_breaks: int | None

    @property
    def total(self):
        return len(self.measured)


@dataclass
class Summary:
    results: object
    baselines: list[str]  # the first is the one that headlines speak of
    lines: list[Line]  # the fastest first, those without a figure last
    measured: list[Measured]
    models: list[str]

    @property
    def baseline(self):
        return self.baselines[0] if self.baselines else None


def summarise(results):
    """All figures of a results file that concern it alone."""
    names = configurations.model_names(results.rows)
    measured = []
    for configuration in configurations.split(results.rows):
        measured += [_measure(row, names[row.model, row.source], configuration)
                     for row in configuration.rows]
    baselines = _baselines(measured)
    groups = {}
    for one in measured:
        groups.setdefault(one.configuration.key, []).append(one)
    lines = [_line(group, baselines) for group in groups.values()]
    first = baselines[0] if baselines else None
    lines.sort(key=lambda line: -line.speedups[first].value if line.speedups.get(first) else 0)
    measured = [one for line in lines for one in line.measured]
    for number, one in enumerate(measured):
        one.number = number
    return Summary(results, baselines, lines, measured, sorted(set(names.values())))


def error_share(row):
    """Largest absolute error over the tolerance; None where either is missing."""
    largest, tolerance = row.accuracy["max_abs"], row.accuracy["tolerance"]
    if largest is None or not tolerance or not np.isfinite(largest / tolerance):
        return None
    return largest / tolerance


def memory_ratio(row, baseline):
    """The baseline's peak over the candidate's, above 1 where the candidate takes less."""
    theirs = row.against_peak_memory_bytes.get(baseline)
    return theirs / row.peak_memory_bytes if theirs and row.peak_memory_bytes else None


def _measure(row, model, configuration):
    candidate = row.samples.get("candidate", np.empty(0))
    speedups, unpaired = {}, 0
    for name, base in row.samples.items():
        if name == "candidate":
            continue
        ratios, dropped = estimates.paired_log_ratios(base, candidate)
        unpaired = max(unpaired, dropped)
        estimate = estimates.of_pairs(ratios, f"{row.job} {name}")
        if estimate:
            speedups[name] = estimate
    good = candidate[np.isfinite(candidate)]
    spread = tuple(map(float, np.percentile(good, [10, 90]))) if len(good) > 1 else None
    return Measured(row, 0, model, configuration, speedups, unpaired,
                    float(np.median(good)) if len(good) else None, spread)


def _baselines(measured):
    """What rows stand against: eager first, then what most do."""
    counts = Counter(name for one in measured for name in one.speedups)
    return sorted(counts, key=lambda name: (name != "eager", -counts[name], name))


def _line(group, baselines):
    configuration = group[0].configuration
    passing = [one for one in group if one.row.passed]
    key = configuration.key
    speedups = {name: estimates.over_models([one.speedups[name] for one in passing
                                             if name in one.speedups], f"{key} {name}")
                for name in baselines}
    first = baselines[0] if baselines else None
    values = [one.speedups[first].value for one in passing if first in one.speedups]
    shares = [one for one in group if error_share(one.row) is not None]
    return Line(
        configuration, group, len(passing),
        Counter(one.row.status for one in group if not one.row.passed), speedups,
        float(np.exp(np.mean(np.log(np.maximum(values, 1))))) if values else None,
        *(spread(getattr(one.row, name) for one in passing)
          for name in ("first_call_ms", "warm_first_call_ms", "compile_ms")),
        _memory(passing, first, key),
        max(shares, key=lambda one: error_share(one.row), default=None),
        _total(sum(map(_calls, one.row.fallbacks)) for one in passing
               if one.row.fallbacks is not None),
        _total(one.row.graph_breaks for one in passing))


def _calls(fallback):
    count = fallback.get("count")
    return int(count) if isinstance(count, (int, float)) and count > 0 else 1


def _memory(passing, baseline, key):
    ratios = [memory_ratio(one.row, baseline) for one in passing]
    return estimates.over_models([estimates.exactly(ratio) for ratio in ratios if ratio],
                                 f"{key} memory")


def spread(values):
    values = [value for value in values if value is not None]
    if not values:
        return None
    return Spread(float(np.median(values)), min(values), max(values), float(np.mean(values)),
                  len(values))


def _total(values):
    values = [value for value in values if value is not None]
    return sum(values) if values else None
