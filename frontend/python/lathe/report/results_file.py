"""Reads the results file of a sweep: a journal of checked lines, of which some may be torn.

A field of the wrong type is missing. What was skipped becomes a sentence of `Results.troubles`;
only a file without any row is an error.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lathe.report import journal_file
from lathe.report.journal_file import (LEAST, MOST, ResultsError, amount, count, mapping, mappings,
                                       number, safe, text)
from lathe.report.quantities import plural

VERSION = 1
FAILURES = {
    "fail_accuracy": "wrong result",
    "fail_to_load": "did not load",
    "fail_to_run": "did not run",
    "refused": "refused",
    "timeout": "timed out",
    "out_of_memory": "out of memory",
    "crashed": "crashed",
}

@dataclass
class Row:
    """What one job gave. None is missing; no number is made up for it."""

    job: str
    environment: str
    settings: dict  # all but the model
    model: str
    source: str
    status: str
    reason: str
    details: str
    accuracy: dict[str, float | str | None]
    samples: dict[str, np.ndarray]  # milliseconds; "candidate", and each that it stands against
    first_call_ms: float | None
    warm_first_call_ms: float | None
    compile_ms: float | None
    peak_memory_bytes: float | None
    against_peak_memory_bytes: dict[str, float]
    graphs: int | None
    graph_breaks: int | None
    fallbacks: list[dict] | None
    kernels: list[dict]
    seconds: float | None
    attempts: int | None

    @property
    def passed(self):
        return self.status == "pass"

    @property
    def status_word(self):
        return "passed" if self.passed else FAILURES.get(self.status, self.status)


@dataclass
class Results:
    """A whole file."""

    path: Path
    name: str
    title: str
    about: str
    jobs: int | None  # that the sweep has; rows may be fewer while it is not finished
    started: str
    environments: dict[str, dict]
    rows: list[Row]
    troubles: list[str] = field(default_factory=list)


def read(path):
    """The results in the file at `path`; raises ResultsError."""
    path = Path(path)
    return from_records(path, *journal_file.records(path))


def from_records(path, records, troubles):
    """The results of what journal_file.records gave for the path; raises ResultsError."""
    sweep, environments, rows, seen, unknown = {}, {}, {}, Counter(), Counter()
    for record in records:
        kind = record.get("kind")
        if kind == "sweep":
            _check_version(path, record)
            sweep = record
        elif kind == "environment":
            environments[text(record.get("id"))] = safe(record)
        elif kind == "row":
            try:
                _keep_row(rows, record, seen)
            except RecursionError:
                seen["nested too deeply"] += 1
        else:
            unknown[text(kind)[:40]] += 1
    if unknown:
        seen[f"of an unknown kind, such as '{next(iter(unknown))}',"] = unknown.total()
    if not rows:
        raise ResultsError(f"{path}: holds no row that can be read{_because(troubles, seen)}")
    troubles = troubles + [f"{plural(n, 'record')} {what} left out."
                           for what, n in seen.items() if n]
    if not sweep:
        troubles.append("The record that describes the sweep is missing: its title, its question "
                        "and the number of its jobs are unknown.")
    name = text(sweep.get("name")) or path.name.split(".")[0]
    return Results(path, name, text(sweep.get("title")) or name, text(sweep.get("about")),
                   count(sweep.get("jobs")), text(sweep.get("started")), environments,
                   list(rows.values()), troubles)


def _because(troubles, seen):
    reasons = troubles + [f"{plural(n, 'record')} {what} left out." for what, n in seen.items()]
    return ": " + " ".join(reasons) if reasons else ", only a head without rows"


def _check_version(path, record):
    version = record.get("version")
    if version != VERSION:
        raise ResultsError(f"{path}: is a results file of version {text(version) or 'unknown'}; "
                           f"this Lathe reads version {VERSION}. Use the Lathe that wrote it.")


def _keep_row(rows, record, seen):
    """Adds a row; of one job, and of jobs with equal settings, the last one stands."""
    settings = record.get("settings")
    if not isinstance(settings, dict) or not text(settings.get("model")):
        seen["without settings or a model"] += 1
        return
    if not text(record.get("status")):
        seen["without a status"] += 1
        return
    row = _row(record, settings)
    key = (row.model, row.source, settings_key(row.settings))
    if key in rows and rows[key].job != row.job:
        seen["measured again with another model or build of Lathe; the earlier are"] += 1
    rows[key] = row


def settings_key(settings):
    """Equal for equal settings. What a row stands against is no part of it."""
    kept = {name: value for name, value in settings.items() if name != "against"}
    return json.dumps(kept, sort_keys=True)


def _row(record, settings):
    status = text(record["status"])
    reason = " ".join(text(record.get("reason")).split())
    if status != "pass" and not reason:
        reason = "no reason was recorded"
    others = {text(name): safe(value) for name, value in settings.items()
              if name not in ("model", "source")}
    return Row(
        job=text(record.get("job")), environment=text(record.get("environment")),
        settings=others, model=text(settings["model"]), source=text(settings.get("source")),
        status=status, reason=reason, details=text(record.get("details")),
        accuracy=_accuracy(record.get("accuracy")),
        samples={text(name): _samples(values)
                 for name, values in mapping(record.get("samples")).items()},
        first_call_ms=amount(record.get("first_call_ms")),
        warm_first_call_ms=amount(record.get("warm_first_call_ms")),
        compile_ms=amount(record.get("compile_ms")),
        peak_memory_bytes=amount(record.get("peak_memory_bytes")),
        against_peak_memory_bytes={
            text(name): size
            for name, value in mapping(record.get("against_peak_memory_bytes")).items()
            if (size := amount(value))},
        graphs=count(record.get("graphs")), graph_breaks=count(record.get("graph_breaks")),
        fallbacks=mappings(record.get("fallbacks")),
        kernels=mappings(record.get("kernels")) or [],
        seconds=amount(record.get("seconds")), attempts=count(record.get("attempts")))


def _accuracy(value):
    value = mapping(value)
    kept = {name: number(value.get(name)) for name in ("max_abs", "max_rel", "cosine",
                                                        "tolerance")}
    return {**kept, "rule": text(value.get("rule"))}


def _samples(values):
    """Milliseconds; what is no positive number is NaN, so that the others keep their places."""
    if not isinstance(values, list):
        return np.empty(0)
    numbers = [number(value) for value in values]
    samples = np.array([np.nan if number is None else number for number in numbers], float)
    samples[~((samples > LEAST) & (samples < MOST))] = np.nan
    return samples
