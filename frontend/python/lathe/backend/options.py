"""What torch.compile's `mode` and `options` may say to this backend."""

import dataclasses
import difflib

from lathe._handle import LatheError

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# Of torch.compile's modes, Lathe's word. On the CPU there are no launches to record.
LATHE_MODES = {
    ("cpu", "reduce-overhead"): "default",
    ("cpu", "max-autotune-no-cudagraphs"): "max-autotune",
    ("cuda", "max-autotune-no-cudagraphs"): "max-autotune",
}


@dataclasses.dataclass(frozen=True)
class Options:
    """All of them have defaults; the first block goes to the library as it is (lathe.h)."""

    mode: str = "default"
    passes: str | None = None
    force: list | None = None  # "kernel NODE = KIND", "tile NODE = 9x3", "keep NODE"
    # "default", "ieee" (no TF32) or "strict"; as PyTorch's convolutions are set unless given.
    numerics: str | None = None
    isa: str | None = None
    threads: int | None = None  # PyTorch's number unless given
    cache: bool = True  # compiled programs are kept for other processes, and found

    # "checked": packed, and packed anew when a call finds others; "frozen": packed and never looked
    # at again; "live": inputs like any other, never packed.
    weights: str = "checked"
    fail_on_fallback: bool = False  # an error where a call would run in eager
    fail_on_graph_skip: bool = False  # on CUDA, an error where a run would be no CUDA graph
    compile_seconds: float | None = None  # what is not compiled by then runs in eager

    @classmethod
    def of(cls, mode, options):
        fields = {field.name: field for field in dataclasses.fields(cls)}
        given = dict(options or {})
        if mode is not None:
            given["mode"] = mode
        for name, value in given.items():
            if name not in fields:
                raise LatheError(f"no option '{name}'{nearest(name, fields)}")
            check(name, value)
        return cls(**given)

    def of_library(self, target, nodes=frozenset()):
        """Options of lathe_load_memory for a graph with these calls, by name: what is forced on
        others is not for it.
        """
        import torch

        # Convolutions on the GPU keep f32 where PyTorch's own are told to.
        keeps_f32 = target == "cuda" and torch.backends.cudnn.conv.fp32_precision != "tf32"
        force = [text for text in self.force or () if nodes.intersection(text.split()[1:2])]
        given = {
            "mode": LATHE_MODES.get((target, self.mode), self.mode),
            "passes": self.passes,
            "force": force or None,
            "numerics": self.numerics or ("ieee" if keeps_f32 else None),
            "isa": self.isa,
            "threads": self.threads or torch.get_num_threads(),
            "target": target,
            "cache": self.cache and not torch.compiler.config.force_disable_caches,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def asks_for_graph(self):
        """Whether a run on CUDA shall be one graph of its launches."""
        return self.mode in ("reduce-overhead", "max-autotune")

    def fail_on(self, report):
        """Raises what these options want to be an error."""
        if self.fail_on_fallback and report.fallbacks:
            raise LatheError(f"fail_on_fallback: {report}")
        if self.fail_on_graph_skip and report.graph_skip:
            raise LatheError(f"fail_on_graph_skip: {report}")

    def __str__(self):
        default = Options()
        names = (field.name for field in dataclasses.fields(self))
        changed = (n for n in names if getattr(self, n) != getattr(default, n))
        return ", ".join(f"{n}={getattr(self, n)!r}" for n in changed)


OPTIONS = tuple(field.name for field in dataclasses.fields(Options))

WORDS = {
    "mode": MODES,
    "numerics": ("default", "ieee", "strict"),
    "weights": ("checked", "frozen", "live"),
}
KINDS = {
    "passes": (str, "a string"),
    "isa": (str, "a string"),
    "force": (list, "a list of strings"),
    "threads": (int, "a number of threads"),
    "cache": (bool, "True or False"),
    "fail_on_fallback": (bool, "True or False"),
    "fail_on_graph_skip": (bool, "True or False"),
    "compile_seconds": ((int, float), "seconds"),
}


def check(name, value):
    if name in WORDS:
        if value not in WORDS[name]:
            expected = ", ".join(repr(word) for word in WORDS[name])
            raise LatheError(
                f"option '{name}' is {value!r}, expected one of {expected}"
                f"{nearest(str(value), WORDS[name])}"
            )
        return
    kind, words = KINDS[name]
    is_flag = kind is bool
    if not isinstance(value, kind) or isinstance(value, bool) != is_flag:
        raise LatheError(f"option '{name}' is {value!r}, expected {words}")
    if name in ("threads", "compile_seconds") and value <= 0:
        raise LatheError(f"option '{name}' is {value!r}, expected more than 0")


def nearest(word, known):
    found = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean '{found[0]}'?" if found else ""
