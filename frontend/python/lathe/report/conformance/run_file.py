"""Reads the journal of `python -m lathe.conformance`.

A record that lacks what it needs is left out and counted; the last record of a case stands.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lathe.report import journal_file
from lathe.report.journal_file import ResultsError, amount, count, mapping, safe, text
from lathe.report.quantities import plural

_MAX_WORDS = 1000  # characters of a reason or of arguments


@dataclass(frozen=True)
class Case:
    """What a backend made of one call."""

    verdict: str
    words: str  # why, where it does not agree
    given: str  # the arguments
    speedup: tuple | None = None  # eager's time over the backend's: 10th percentile, median, 90th


@dataclass
class Run:
    """A whole journal."""

    path: Path
    backend: str
    settings: dict  # all but the backend
    environments: dict[str, dict]
    asked: dict[tuple[str, str], int]  # entries by suite and dtype
    about: dict[str, str]  # suites
    cases: dict[tuple[str, str, str, int], Case]  # by suite, name, dtype and number
    entries: set[tuple[str, str, str]]  # those that are done
    troubles: list[str] = field(default_factory=list)


def is_run(records):
    """Whether records are of conformance, rather than of a sweep."""
    return any(record.get("kind") in ("conformance", "case") for record in records)


def read(path):
    """The run in the file at `path`; raises ResultsError."""
    path = Path(path)
    return from_records(path, *journal_file.records(path))


def from_records(path, records, troubles):
    """The run of what journal_file.records gave for the path; raises ResultsError."""
    run = Run(path, "", {}, {}, {}, {}, {}, set(), list(troubles))
    bad = Counter()
    for record in records:
        kind = record.get("kind")
        if kind in _KEEP:
            try:
                _KEEP[kind](run, record)
            except (TypeError, RecursionError):
                bad["that lack what they need"] += 1
        else:
            bad[f"of an unknown kind, such as '{text(kind)[:40]}',"] += 1
    run.troubles += [f"{path.name}: {plural(n, 'record')} {what} left out."
                     for what, n in bad.items()]
    if not run.cases:
        raise ResultsError(f"{path}: holds no case; expected what python -m lathe.conformance "
                           "writes to results/conformance-BACKEND.jsonl")
    if not run.backend:
        run.backend = path.name.split(".")[0]
        run.troubles.append(f"{path.name}: the record that names the backend is missing; the file "
                            "is called by its own name.")
    return run


def _keep_head(run, record):
    run.backend = text(record.get("backend"))[:100]
    run.settings = {text(name): safe(value) for name, value in record.items()
                    if name not in ("kind", "backend")}


def _keep_environment(run, record):
    run.environments[text(record.get("id"))] = safe(record)


def _keep_asked(run, record):
    suite, dtype = _word(record, "suite"), _word(record, "dtype")
    entries = count(record.get("entries")) or 0
    run.asked[suite, dtype] = max(entries, run.asked.get((suite, dtype), 0))
    run.about[suite] = text(record.get("about"))[:_MAX_WORDS]


def _keep_case(run, record):
    number = record.get("case")
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) > 1 << 31:
        raise TypeError
    words = " ".join(text(record.get("words")).split())[:_MAX_WORDS]
    given = text(record.get("given"))[:_MAX_WORDS]
    verdict, speedup = _word(record, "verdict"), mapping(record.get("measured")).get("speedup")
    run.cases[*_entry(record), number] = Case(verdict, words, given, _speedup(speedup))


def _speedup(value):
    numbers = [amount(one) for one in value] if isinstance(value, list) else []
    return tuple(numbers) if len(numbers) == 3 and all(numbers) else None


def _keep_entry(run, record):
    run.entries.add(_entry(record))


def _entry(record):
    return tuple(_word(record, key) for key in ("suite", "name", "dtype"))


def _word(record, key):
    value = mapping(record).get(key)
    if not isinstance(value, str) or not value:
        raise TypeError
    return text(value)[:_MAX_WORDS]


_KEEP = {"conformance": _keep_head, "environment": _keep_environment, "asked": _keep_asked,
         "case": _keep_case, "entry": _keep_entry}
