"""Tables with exactly the columns of PyTorch's own dashboard, for the programs that read those.

One file for each configuration: the dashboard's readers take a file for each compiler and know no
column that would tell several apart. Times and sizes have its units: abs_latency in milliseconds,
compilation_latency in seconds, peaks in 10^9 bytes. What was not measured stays empty, where
PyTorch writes 0: a reader that filters `> 0` drops both, and a mean of what is left is not wrong.
compilation_latency is the first call with cold caches less one call later, as theirs is.
calls_captured and unique_graph_breaks are not in a sweep's rows and stay empty.
"""

from __future__ import annotations

import csv
import io
import re

from lathe.report.summary import memory_ratio

COLUMNS = ["dev", "name", "batch_size", "speedup", "abs_latency", "compilation_latency",
           "compression_ratio", "eager_peak_mem", "dynamo_peak_mem", "calls_captured",
           "unique_graphs", "graph_breaks", "unique_graph_breaks"]


def files(summary, path):
    """By path, the text of every file: `path` itself for one configuration, else PATH_LABEL.csv."""
    made = {}
    for line in summary.lines:
        target = path
        if len(summary.lines) > 1:
            stem = f"{path.stem}_{file_name(line.configuration.label)}"
            target = path.with_name(f"{stem}.csv")
            number = 2
            while target in made:  # labels that differ only in what a file name cannot hold
                target = path.with_name(f"{stem}_{number}.csv")
                number += 1
        made[target] = _text(summary, line)
    return made


def file_name(label):
    """A label as part of a file's name."""
    return re.sub(r"[^\w.=-]+", "_", label.replace("\u2212", "no-"))[:120].strip("_.") or "unnamed"


def _text(summary, line):
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for one in line.measured:
        writer.writerow(_columns(one, summary.baseline))
    return out.getvalue()


def _columns(one, baseline):
    row = one.row
    found = {"dev": row.settings.get("target"), "name": _name(one.model),
             "batch_size": row.settings.get("batch")}
    if not row.passed:
        return found
    speedup = one.speedups.get(baseline)
    theirs = row.against_peak_memory_bytes.get(baseline)
    compiling = None
    if row.first_call_ms is not None and one.median_ms is not None:
        compiling = max(0.0, row.first_call_ms - one.median_ms) / 1e3
    return {**found, "speedup": _figure(speedup and speedup.value),
            "abs_latency": _figure(one.median_ms), "compilation_latency": _figure(compiling),
            "compression_ratio": _figure(memory_ratio(row, baseline)),
            "eager_peak_mem": _figure(theirs and theirs / 1e9),
            "dynamo_peak_mem": _figure(row.peak_memory_bytes and row.peak_memory_bytes / 1e9),
            "unique_graphs": row.graphs, "graph_breaks": row.graph_breaks}


def _name(model):
    """A spreadsheet runs a cell that begins with one of these as a formula."""
    return f"'{model}" if model[:1] in "=+-@\t\r" else model


def _figure(value):
    return "" if value is None else f"{value:.6g}"
