"""Reads the results file of a sweep: a journal of checked lines, of which some may be torn.

Each line is the CRC-32 of a JSON object in eight hex digits, a space and the object. A reader
trusts no line: a bad one anywhere is skipped and counted, a field of the wrong type is missing.
What was skipped becomes a sentence of `Results.troubles`; only a file without any row is an error.
A file that begins as JSON is read as what `./lathe run` leaves (study_file).
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lathe.report import study_file
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
_MAX_LINE_BYTES = 64 << 20
_MAX_LINES = 400_000
# Beyond these a number of milliseconds or bytes is a mistake.
_LEAST, _MOST = 1e-9, 1e15
_MAX_TEXT = 20_000  # characters of one string; a traceback's tail is far shorter
# Control characters, halves of surrogate pairs, and marks that turn the direction of text round.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


class ResultsError(Exception):
    """A file that no report can be made of; the message names what was found and expected."""


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
    records, troubles = _records(path)
    sweep, environments, rows, seen, unknown = {}, {}, {}, Counter(), Counter()
    for record in records:
        kind = record.get("kind")
        if kind == "sweep":
            _check_version(path, record)
            sweep = record
        elif kind == "environment":
            environments[_text(record.get("id"))] = _safe(record)
        elif kind == "row":
            try:
                _keep_row(rows, record, seen)
            except RecursionError:
                seen["nested too deeply"] += 1
        else:
            unknown[_text(kind)[:40]] += 1
    if unknown:
        seen[f"of an unknown kind, such as '{next(iter(unknown))}',"] = unknown.total()
    if not rows:
        raise ResultsError(f"{path}: holds no row that can be read{_because(troubles, seen)}")
    troubles += [f"{plural(n, 'record')} {what} left out." for what, n in seen.items() if n]
    if not sweep:
        troubles.append("The record that describes the sweep is missing: its title, its question "
                        "and the number of its jobs are unknown.")
    name = _text(sweep.get("name")) or path.name.split(".")[0]
    return Results(path, name, _text(sweep.get("title")) or name, _text(sweep.get("about")),
                   _count(sweep.get("jobs")), _text(sweep.get("started")), environments,
                   list(rows.values()), troubles)


def _because(troubles, seen):
    reasons = troubles + [f"{plural(n, 'record')} {what} left out." for what, n in seen.items()]
    return ": " + " ".join(reasons) if reasons else ", only a head without rows"


def _check_version(path, record):
    version = record.get("version")
    if version != VERSION:
        raise ResultsError(f"{path}: is a results file of version {_text(version) or 'unknown'}; "
                           f"this Lathe reads version {VERSION}. Use the Lathe that wrote it.")


def _records(path):
    """The objects of all good lines, and sentences about the bad ones."""
    try:
        size = path.stat().st_size
        file = open(path, "rb")
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None
    if size == 0:
        file.close()
        raise ResultsError(f"{path}: is empty; expected the lines that ./lathe sweep writes")
    records, bad, last = [], [], 0
    with file:
        try:
            if file.peek(1)[:1] == b"{":
                if study := study_file.records(file):
                    return study, []
                file.seek(0)
            while line := file.readline(_MAX_LINE_BYTES):
                last += 1
                record = _record(line)
                if record is not None:
                    records.append(record)
                elif line.strip():
                    bad.append(last)
                if last > _MAX_LINES:
                    raise ResultsError(f"{path}: has more than {_MAX_LINES:,} lines")
        except OSError as error:  # a folder, or a disk that fails
            raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not records:
        raise ResultsError(f"{path}: none of its {plural(last, 'line')} is a line of a results "
                           "file: 8 hex digits of a checksum, a space and JSON, as ./lathe sweep "
                           "writes to results/NAME.sweep.jsonl. Nor is it what ./lathe run writes")
    if not bad:
        return records, []
    where = ", ".join(map(str, bad[:5])) + (" ..." if len(bad) > 5 else "")
    why = "the last one, as after a kill" if bad == [last] else f"line {where}"
    return records, [f"{plural(len(bad), 'line')} torn or changed ({why}); what stood there is "
                     "missing here."]


def _record(line):
    head, _, body = line.partition(b" ")
    body = body.rstrip(b"\r\n")
    if not re.fullmatch(rb"[0-9a-fA-F]{8}", head) or int(head, 16) != zlib.crc32(body):
        return None
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _keep_row(rows, record, seen):
    """Adds a row; of one job, and of jobs with equal settings, the last one stands."""
    settings = record.get("settings")
    if not isinstance(settings, dict) or not _text(settings.get("model")):
        seen["without settings or a model"] += 1
        return
    if not _text(record.get("status")):
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
    status = _text(record["status"])
    reason = " ".join(_text(record.get("reason")).split())
    if status != "pass" and not reason:
        reason = "no reason was recorded"
    others = {_text(name): _safe(value) for name, value in settings.items()
              if name not in ("model", "source")}
    return Row(
        job=_text(record.get("job")), environment=_text(record.get("environment")),
        settings=others, model=_text(settings["model"]), source=_text(settings.get("source")),
        status=status, reason=reason, details=_text(record.get("details")),
        accuracy=_accuracy(record.get("accuracy")),
        samples={_text(name): _samples(values)
                 for name, values in _object(record.get("samples")).items()},
        first_call_ms=_amount(record.get("first_call_ms")),
        warm_first_call_ms=_amount(record.get("warm_first_call_ms")),
        compile_ms=_amount(record.get("compile_ms")),
        peak_memory_bytes=_amount(record.get("peak_memory_bytes")),
        against_peak_memory_bytes={
            _text(name): amount
            for name, value in _object(record.get("against_peak_memory_bytes")).items()
            if (amount := _amount(value))},
        graphs=_count(record.get("graphs")), graph_breaks=_count(record.get("graph_breaks")),
        fallbacks=_objects(record.get("fallbacks")),
        kernels=_objects(record.get("kernels")) or [],
        seconds=_amount(record.get("seconds")), attempts=_count(record.get("attempts")))


def _accuracy(value):
    value = _object(value)
    kept = {name: _number(value.get(name)) for name in ("max_abs", "max_rel", "cosine",
                                                        "tolerance")}
    return {**kept, "rule": _text(value.get("rule"))}


def _samples(values):
    """Milliseconds; what is no positive number is NaN, so that the others keep their places."""
    if not isinstance(values, list):
        return np.empty(0)
    numbers = [_number(value) for value in values]
    samples = np.array([np.nan if number is None else number for number in numbers], float)
    samples[~((samples > _LEAST) & (samples < _MOST))] = np.nan
    return samples


def _number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def _amount(value):
    value = _number(value)
    return value if value == 0 or value is not None and _LEAST < value < _MOST else None


def _count(value):
    value = _amount(value)
    return None if value is None else int(value)


def _object(value):
    return value if isinstance(value, dict) else {}


def _objects(value):
    return [_safe(v) for v in value if isinstance(v, dict)] if isinstance(value, list) else None


def _text(value):
    """Safe to write into any file; numbers and the like as JSON has them, null as nothing."""
    if value is None:
        return ""
    if not isinstance(value, str):
        value = json.dumps(value, sort_keys=True)
    return _UNSAFE.sub("\ufffd", value[:_MAX_TEXT])


def _safe(value):
    """Any JSON with every string in it made safe, and no number that JSON lacks."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_safe(v) for v in value]
    if isinstance(value, dict):
        return {_text(k): _safe(v) for k, v in value.items()}
    if value is None or isinstance(value, bool):
        return value
    return value if isinstance(value, int) and abs(value) < 1 << 63 else _number(value)

