"""Leave-one-out tables in the style of table 4 of the PyTorch 2 paper.

Rows are what was taken out, columns groups of models or machines. Each figure compares a
configuration with the one that has everything, over the models that passed in both. Both were
paired with the same baseline, which leaves the quotient and takes the machine's drift with it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from lathe.report import estimates
from lathe.report.configurations import AXES, options_word, word
from lathe.report.results_file import settings_key


@dataclass
class Cell:
    """One option taken out for one group of models."""

    slowdown: estimates.Estimate | None  # time without / time with everything
    speedup: float | None  # over the baseline, of what is left
    only_full: int  # models that pass with everything and fail without


@dataclass
class Table:
    title: str
    columns: list[str]
    full: list[float | None]  # geometric mean speed-up with everything, by column
    rows: list[tuple[str, list[Cell]]]  # the dearest loss first


def tables(summary):
    """One table for each backend and, where there are several, each way to group models."""
    if summary.baseline is None:
        return []
    made = []
    for backend, pairs in _pairs(summary).items():
        for title, grouping in (("machine and dtype", _by_machine),
                                ("source of models", _by_source)):
            columns = sorted({grouping(one) for _, full, _ in pairs for one in full})
            if grouping is _by_source and len(columns) < 2:
                continue
            made.append(_table(f"{backend}, by {title}", pairs, columns, grouping,
                               summary.baseline))
    return made


def _by_machine(one):
    settings = one.row.settings
    return " ".join(word(axis, settings.get(axis)) for axis in ("target", "dtype")).strip() or "all"


def _by_source(one):
    return one.row.source or "unknown source"


def _pairs(summary):
    """By backend: (what is taken out, rows with everything, rows without it)."""
    groups = defaultdict(dict)
    for line in summary.lines:
        settings = line.configuration.settings
        key = settings_key({**{k: v for k, v in settings.items() if k != "options"},
                            "mode": settings.get("mode") or "default"})
        groups[key][options_word(settings.get("options"))] = line
    found = defaultdict(list)
    for variants in groups.values():
        full = next((variants[name] for name in ("", "passes=default") if name in variants), None)
        if full is None:
            continue
        for name, line in variants.items():
            if line is not full:
                found[str(full.configuration.settings.get("backend"))].append(
                    (name, full.measured, line.measured))
    return found


def _table(title, pairs, columns, grouping, baseline):
    by_name = defaultdict(list)
    for name, full, without in pairs:
        by_name[name].append((full, without))
    rows = []
    for name, members in by_name.items():
        rows.append((name, [_cell(members, column, grouping, baseline, f"{title} {name} {column}")
                            for column in columns]))
    rows.sort(key=lambda row: -max((c.slowdown.value for c in row[1] if c.slowdown), default=0))
    everything = {id(one): one for _, full, _ in pairs for one in full}.values()
    full = [_geomean([one.speedups[baseline].value for one in everything
                      if one.row.passed and baseline in one.speedups and grouping(one) == column])
            for column in columns]
    return Table(title, columns, full, rows)


def _cell(members, column, grouping, baseline, name):
    ratios, speeds, only_full = defaultdict(list), [], 0
    for full, without in members:
        # Every setting but the options, so that a model meets itself.
        others = {_identity(one): one for one in without}
        for one in full:
            other = others.get(_identity(one))
            if grouping(one) != column or other is None or not one.row.passed:
                continue
            if not other.row.passed:
                only_full += 1
            elif baseline in one.speedups and baseline in other.speedups:
                ratios[one.model].append(
                    estimates.quotient(one.speedups[baseline], other.speedups[baseline]))
                speeds.append(other.speedups[baseline].value)
    return Cell(estimates.by_model(ratios, name), _geomean(speeds), only_full)


def _identity(one):
    settings = one.row.settings
    return one.model, settings_key({axis: settings.get(axis) for axis in AXES
                                    if axis not in ("options", "mode")})


def _geomean(values):
    return float(np.exp(np.mean(np.log(values)))) if values else None
