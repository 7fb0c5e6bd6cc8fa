"""The results of `./lathe run` (results/NAME.json) as the records of a sweep.

A study's variants were measured by turns in one process, so the i-th samples of two make a pair.
What a sweep has backends for, a study has variants; each stands against the first of them, as in
the table that `./lathe run` prints.
"""

from __future__ import annotations

import hashlib
import json

_STATUSES = {"ok": "pass", "unchecked": "pass", "wrong": "fail_accuracy"}
_MAX_BYTES = 256 << 20


def records(file):
    """The records in an open file; None when it holds no study."""
    try:
        study = json.loads(file.read(_MAX_BYTES))
    except (ValueError, RecursionError):
        return None
    if not isinstance(study, dict) or not isinstance(study.get("rows"), list):
        return None
    rows = [row for row in study["rows"] if isinstance(row, dict)]
    config = study.get("config") if isinstance(study.get("config"), dict) else {}
    machine = study.get("environment") if isinstance(study.get("environment"), dict) else {}
    first = {}  # of each model, target and number of threads
    for row in rows:
        first.setdefault(_place(row), row)
    head = {"kind": "sweep", "version": 1, "name": study.get("name"),
            "title": config.get("title"), "about": config.get("about"), "jobs": len(rows),
            "started": machine.get("started")}
    environment = {"kind": "environment", "id": "study", "os": machine.get("system"), **machine}
    return [head, environment, *(_row(row, first[_place(row)]) for row in rows)]


def _place(row):
    return json.dumps([row.get("model"), row.get("target"), row.get("threads")])


def _row(row, base):
    settings = {name: row.get(name) for name in ("model", "target", "dtype", "threads")}
    settings["backend"] = row.get("variant")
    status = _STATUSES.get(str(row.get("status")), row.get("status"))
    samples = {"candidate": row.get("samples_ms"),
               str(base.get("variant")): base.get("samples_ms")}
    return {"kind": "row", "settings": settings, "status": status, "reason": row.get("why"),
            "job": hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16],
            "environment": "study", "samples": samples, "compile_ms": row.get("compile_ms"),
            "accuracy": {"max_abs": row.get("max_abs_error")},
            "peak_memory_bytes": row.get("peak_bytes"),
            "against_peak_memory_bytes": {str(base.get("variant")): base.get("peak_bytes")}}
