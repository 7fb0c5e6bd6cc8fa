"""Lathe as a backend of torch.compile, for inference.

    import torch
    compiled = torch.compile(model.eval(), backend="lathe", dynamic=None, mode="max-autotune")
    with torch.no_grad():
        compiled(x)
    for report in lathe.backend.reports():
        print(report)

The package registers the backend by an entry point; where it is not installed, `import
lathe.backend` does. torch.compile takes a mode or options, not both; options.OPTIONS has the words.

A graph that Dynamo captured goes through AOTAutograd's inference path (inference.py). Calls that
Lathe refuses become what PyTorch decomposes them to (decompose.py); where that does not help, the
graph is cut there, and they run in eager (pieces.py): in mode reduce-overhead in one CUDA graph
with the pieces (recording.py), and only once where they read weights alone (settled.py). Weights
are packed once and watched (weights.py). What became of each graph stands in reports(): nothing
falls back unsaid, and each kernel has its lines, its predicted and, with set_timing(True), its
measured time.
"""

import logging

from lathe.backend.inference import NeedsGradients, compile_inference
from lathe.backend.options import OPTIONS, Options
from lathe.backend.report import Report

__all__ = ["OPTIONS", "Report", "backend", "clear_reports", "reports", "set_timing"]

log = logging.getLogger("lathe.backend")
MAX_REPORTS = 1000  # a process that compiles for ever keeps the latest
_reports = []


def reports():
    """A Report for each graph that was compiled, oldest first."""
    return list(_reports)


def clear_reports():
    _reports.clear()


def set_timing(on):
    """Whether later calls of the graphs that are compiled now measure each launch, which makes them
    a little slower: a report's kernels then have "ms", the least of the calls since.
    """
    for report in _reports:
        report.is_timed = on
        for model in report.models:
            model.set_timing(on)


def backend(gm, example_inputs, *, mode=None, options=None):
    """What torch.compile calls with each graph; returns what runs it."""
    settings = Options.of(mode, options)
    report = Report(len(_reports), str(settings))
    try:
        call = compile_inference(gm, example_inputs, settings, report)
    except NeedsGradients as reason:
        report.whole_graph(str(reason), sum(n.op.startswith("call") for n in gm.graph.nodes))
        call = gm.forward
    # Not before: Dynamo begins a graph again, by an exception, when a size turns out to be fixed.
    del _reports[: len(_reports) - MAX_REPORTS + 1]
    _reports.append(report)
    settings.fail_on(report)
    if report.fallbacks:
        log.warning("%s", report)
    return call


def _register():
    import torch._dynamo

    if "lathe" not in torch._dynamo.list_backends(exclude_tags=()):
        torch._dynamo.register_backend(backend, name="lathe")


_register()
