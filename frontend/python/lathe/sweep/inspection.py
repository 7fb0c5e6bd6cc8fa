"""What the compilations of this process left to be told: time, graphs, kernels, fallbacks."""

import dataclasses
import importlib

# The results file's words for what lathe.backend.reports() tells of each graph.
FALLBACK = ("op", "count", "reason", "line")
TIMED_CALLS = 5
MAX_KERNELS = 32  # of a row, those that take longest; what is left is one more


def tell(backend):
    """Parts of a row. Counts of graphs are those of the whole process until now."""
    from torch._dynamo.utils import compilation_time_metrics, counters

    found = {"compile_ms": None, "graphs": None, "graph_breaks": None,
             "fallbacks": [], "kernels": []}
    if counters["stats"]["unique_graphs"]:
        found["graphs"] = counters["stats"]["unique_graphs"]
        # Some breaks are in one counter, some in the other.
        breaks, resumes = counters["graph_break"], counters["resumes"]
        found["graph_breaks"] = max(sum(breaks.values()), sum(resumes.values()))
        seconds = compilation_time_metrics.get("OutputGraph.call_user_compiler", [])
        found["compile_ms"] = sum(seconds) * 1e3 if seconds else None
    return found | (of_lathe() if backend == "lathe" else {})


def of_lathe():
    """What Lathe tells of its graphs, one after another."""
    told = importlib.import_module("lathe.backend").reports()
    times = [report.compile_ms for report in told if report.compile_ms is not None]
    return {
        "compile_ms": sum(times) if times else None,
        "fallbacks": [pick(item, FALLBACK) for report in told for item in report.fallbacks],
    }


def pick(item, keys):
    item = dataclasses.asdict(item)
    return {key: item.get(key) for key in keys}


def kernels(backend, call):
    """The kernels of a call, the longest first, each timed; none but Lathe's are known."""
    if backend != "lathe":
        return []
    lathe_backend = importlib.import_module("lathe.backend")
    lathe_backend.set_timing(True)
    try:
        for _ in range(TIMED_CALLS):
            call()
        launches = [row for report in lathe_backend.reports() for row in report.kernels]
    finally:
        lathe_backend.set_timing(False)
    # A graph that another took the place of is compiled still, but did not run.
    return longest(row for row in launches if row["ms"] is not None)


def longest(launches):
    """Launches that do the same in other layers are one row."""
    rows = {}
    for launch in launches:
        key = launch["label"], launch["kind"], launch["ops"]
        same = rows.setdefault(key, {
            "label": launch["label"], "kind": launch["kind"], "ops": launch["ops"],
            "line": launch["line"], "count": 0, "ms": 0.0, "predicted_ms": 0.0})
        add(same, launch, 1)
    found = sorted(rows.values(), key=lambda row: -row["ms"])
    rest = found[MAX_KERNELS:]
    if rest:
        other = {"label": f"{len(rest)} others", "kind": None, "ops": None, "line": None,
                 "count": 0, "ms": 0.0, "predicted_ms": 0.0}
        for row in rest:
            add(other, row, row["count"])
        found[MAX_KERNELS:] = [other]
    return found


def add(row, other, count):
    row["count"] += count
    row["ms"] += other["ms"]
    known = row["predicted_ms"] is not None and other["predicted_ms"] is not None
    row["predicted_ms"] = row["predicted_ms"] + other["predicted_ms"] if known else None
