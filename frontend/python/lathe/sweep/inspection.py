"""What the compilations of this process left to be told: time, graphs, kernels, fallbacks."""

import dataclasses
import importlib

# The results file's words for what lathe.backend.reports() tells of each graph.
FALLBACK = ("op", "count", "reason", "line")
KERNEL = ("label", "ops", "ms", "predicted_ms", "kind", "lines")


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
    told = [as_dict(report) for report in importlib.import_module("lathe.backend").reports()]
    times = [report["compile_ms"] for report in told if report.get("compile_ms") is not None]
    return {
        "compile_ms": sum(times) if times else None,
        "fallbacks": [pick(item, FALLBACK) for report in told for item in report["fallbacks"]],
        "kernels": [
            pick(item, KERNEL) for report in told for item in report.get("kernels", [])
        ],
    }


def as_dict(value):
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else dict(value)


def pick(item, keys):
    item = as_dict(item)
    return {key: item.get(key) for key in keys}
