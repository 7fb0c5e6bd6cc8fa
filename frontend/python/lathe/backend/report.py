"""What became of a graph: which calls Lathe runs, which eager runs, and why."""

import dataclasses
import weakref


@dataclasses.dataclass
class Fallback:
    """Calls of one op that run in eager, for one reason."""

    op: str
    count: int
    reason: str
    line: str | None  # of the user's code, of the first call


@dataclasses.dataclass
class Segment:
    """Calls that run one after another in one place."""

    runs_in: str  # "lathe" or "eager"
    calls: int
    kernels: int | None  # launches, of Lathe's
    compile_ms: float
    bytes_in: int  # of tensors that cross into it, at the first sizes
    bytes_out: int
    cache: str | None  # whether its program was found in the user's cache, or why not


@dataclasses.dataclass
class Report:
    """Of one graph that torch.compile handed over."""

    graph: int  # its number in this process
    options: str  # those that are not the default
    segments: list = dataclasses.field(default_factory=list)
    fallbacks: list = dataclasses.field(default_factory=list)
    reason: str | None = None  # why the whole graph runs in eager
    compile_ms: float = 0.0
    repacks: list = dataclasses.field(default_factory=list)  # why weights were packed anew
    settled: dict = dataclasses.field(default_factory=dict)  # ops in eager once, and how often
    decomposed: dict = dataclasses.field(default_factory=dict)  # ops as PyTorch does, and how often
    graph_skip: str | None = None  # why a run is no CUDA graph, where one was asked for

    def __post_init__(self):
        self._models = []  # who compiled them keeps them
        self.is_timed = False

    def run_by(self, models):
        """The models of the library that run its calls, in order."""
        self._models = [weakref.ref(model) for model in models]

    @property
    def models(self):
        """Those that are still there: torch._dynamo.reset() lets go of a graph."""
        return [model for model in (ref() for ref in self._models) if model is not None]

    @property
    def kernels(self):
        """The launches of a run, as lathe.load's models tell them; none once the graph is gone."""
        return [row for model in self.models for row in model.kernels]

    def whole_graph(self, reason, calls):
        """All of it runs in eager."""
        self.reason = reason
        self.segments = [Segment("eager", calls, None, 0.0, 0, 0, None)]
        self.fallbacks = [Fallback("the whole graph", calls, reason, None)]

    def fall_back(self, op, reason, line):
        for known in self.fallbacks:
            if (known.op, known.reason) == (op, reason):
                known.count += 1
                return
        self.fallbacks.append(Fallback(op, 1, reason, line))

    @property
    def calls_in_lathe(self):
        return sum(s.calls for s in self.segments if s.runs_in == "lathe")

    def __str__(self):
        total = sum(s.calls for s in self.segments)
        head = f"graph {self.graph}: {self.calls_in_lathe} of {total} calls run in Lathe"
        rows = [
            f"  {f.op}, {f.count}x in eager: {f.reason}" + (f" ({f.line})" if f.line else "")
            for f in self.fallbacks
        ]
        rows += [
            f"  {op}, {count}x in eager once: it reads weights alone, or nothing"
            for op, count in self.settled.items()
        ]
        rows += [
            f"  {op}, {count}x as PyTorch decomposes it" for op, count in self.decomposed.items()
        ]
        rows += [f"  weights were packed anew: {reason}" for reason in self.repacks]
        if self.graph_skip:
            rows.append(f"  no CUDA graph: {self.graph_skip}")
        return "\n".join([head, *rows])
