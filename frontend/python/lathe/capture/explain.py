"""lathe.explain: what torch._dynamo.explain says, and what it does not."""

from __future__ import annotations

import dataclasses

from lathe.capture.capture import observe, unique_breaks

_WIDTH = 96


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What Dynamo made of a model; printing it gives the text.

    The first six are torch._dynamo.explain's, over all calls; ops here are methods too, which
    torch leaves out (`y.sum()` is one). breaks: rows, each break once.
    recompiles: rows in the order of time, `cause` the index of the one that each follows from.
    refused: by graph, why it has no ATen graph for Lathe.
    """

    graph_count: int
    graph_break_count: int
    op_count: int
    ops_per_graph: dict  # by graph id
    out_guards: dict  # rows by graph id
    compile_times: dict  # seconds by graph id
    breaks: list
    recompiles: list
    refused: dict
    model: str

    def __str__(self):
        return "\n".join([*self._summary(), *self._breaks(), *self._recompiles(), *self._refused()])

    def _summary(self):
        causes = [row for i, row in enumerate(self.recompiles) if row["cause"] == i]
        yield (f"{self.model}: {_count(self.graph_count, 'graph')}, "
               f"{_count(self.graph_break_count, 'break')}, "
               f"{_count(len(self.recompiles), 'recompile')}"
               + (f" of {_count(len(causes), 'cause')}" if self.recompiles else ""))
        for graph, ops in self.ops_per_graph.items():
            guards, seconds = self.out_guards.get(graph, []), self.compile_times.get(graph)
            spent = f", {seconds:.2f} s" if seconds is not None else ""
            yield f"  graph {graph}: {_count(ops, 'op')}, {_count(len(guards), 'guard')}{spent}"

    def _breaks(self):
        for row in self.breaks:
            yield f"{row['file']}:{row['line']}: break: {_cut(row['reason'])}"
            if row["code"]:
                yield f"    {_cut(row['code'])}"
            yield from (f"  hint: {_cut(hint)}" for hint in row["hints"][:1])

    def _recompiles(self):
        for i, row in enumerate(self.recompiles):
            if row["cause"] == i:
                more = sum(other["cause"] == i for other in self.recompiles) - 1
                also = f"; {_count(more, 'recompile')} more for it" if more else ""
                place = f" ({row['file']}:{row['line']})" if "line" in row else ""
                yield (f"call {row['call']} recompiles frame {row['frame']}: "
                       f"{_cut(row['reason'])}{place}{also}")

    def _refused(self):
        for graph, reason in self.refused.items():
            yield f"graph {graph} cannot be handed to Lathe: {_cut(reason)}"


def explain(model, args, kwargs=None, *, dynamic=None):
    """What Dynamo makes of `model` in these calls; the arguments are lathe.capture's.

    Nothing is written. The calls are real, and Dynamo is reset before and after.
    """
    seen = observe(model, args, kwargs, dynamic=dynamic)
    compiles = [row for row in seen.manifest["compiles"] if row["graph"]]
    by_graph = {row["graph"]["id"]: row for row in compiles}
    breaks = unique_breaks(seen.breaks)
    return Explanation(
        graph_count=len(by_graph),
        graph_break_count=len(breaks),
        op_count=sum(row["graph"]["ops"] for row in compiles),
        ops_per_graph={name: row["graph"]["ops"] for name, row in by_graph.items()},
        out_guards=seen.guards,
        compile_times={name: row.get("seconds") for name, row in by_graph.items()},
        breaks=breaks,
        recompiles=seen.recompiles,
        refused={name: row["graph"]["refused"] for name, row in by_graph.items()
                 if row["graph"]["refused"]},
        model=seen.manifest["model"],
    )


def _count(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _cut(text):
    line = text.partition("\n")[0]
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."
