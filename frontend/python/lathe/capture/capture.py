"""lathe.capture: everything that Dynamo saw of a model, as a bundle that needs no PyTorch."""

from __future__ import annotations

import dataclasses
import json
import linecache
import platform
from pathlib import Path

import torch

from lathe import _shared_names
from lathe._handle import LatheError
from lathe.capture import breaks, bundle, guards, recompiles, single, values
from lathe.capture.observer import Observer

_AROUND = 4  # lines of Python that are kept on either side of a break


class GraphBreaks(LatheError):
    """A model that was to be one graph is not. `breaks` has a row for each that was found."""

    def __init__(self, rows):
        self.breaks = rows
        noun = "graph break" if len(rows) == 1 else "graph breaks"
        lines = [f"fullgraph=True, but {len(rows)} {noun}:"]
        for row in rows:
            lines.append(f"  {row['file']}:{row['line']}: {row['reason']}")
            if row["code"]:
                lines.append(f"    {row['code']}")
        super().__init__("\n".join(lines))


@dataclasses.dataclass(frozen=True)
class Captured:
    """What was seen, as rows; the bundle at `path` has them too."""

    path: Path
    manifest: dict
    breaks: list  # each graph break, as often as it was met
    recompiles: list  # in the order of time, each with the index of its cause


def capture(model, args, kwargs=None, *, path, dynamic=None, fullgraph=False, project="."):
    """Runs `model` under Dynamo and writes all that it saw to `path`.

    args: a tuple of arguments, or a list of such tuples for several calls, so that recompiles are
    seen; kwargs: a dict, or a list of one for each call. dynamic: torch.compile's. fullgraph:
    raises GraphBreaks with every break at once, and writes nothing. path: a new folder, or a file
    that ends in .zip; a bundle that is there is replaced, whole or not at all. project: source
    files are named relative to it, as in lathe.export.

    The calls are real ones, in the caller's grad mode: they change what the model changes. Graphs
    run in eager. Dynamo is reset before and after (torch._dynamo.reset()), which drops what was
    compiled before. `model` may also be a torch.export.ExportedProgram or a GraphModule of
    torch.fx.symbolic_trace: one graph, no guards and no breaks.
    """
    bundle.check_target(path)
    seen = observe(model, args, kwargs, dynamic=dynamic, fullgraph=fullgraph, project=project)
    bundle.write(path, seen.files)
    return Captured(Path(path), seen.manifest, seen.breaks, seen.recompiles)


@dataclasses.dataclass(frozen=True)
class Seen:
    """All of a capture in memory; `files` are a bundle's, by name."""

    manifest: dict
    breaks: list
    recompiles: list
    guards: dict  # rows by graph id
    files: dict


def observe(model, args, kwargs=None, *, dynamic=None, fullgraph=False, project="."):
    """A capture that writes nothing."""
    if dynamic not in (None, True, False):
        raise LatheError(f"'dynamic' is True, False or None, got {dynamic!r}")
    calls = _calls(args, kwargs)
    if single.is_single(model):
        document, python = single.lower(model, calls, dynamic, project)
        return _seen_single(model, document, python)
    if not callable(model):
        raise LatheError(f"the model is a module or a function, got {type(model).__name__}")
    # A model that torch.compile wrapped is captured as it was.
    model = getattr(model, "_orig_mod", model)
    seen = Observer(project)
    trace = _run(seen, model, calls, dynamic)
    if fullgraph and seen.breaks:
        raise GraphBreaks(unique_breaks(seen.breaks))
    return _seen(seen, model, trace, dynamic)


def unique_breaks(rows):
    """Each break once, however many compilations met it."""
    return list({breaks.key(row): row for row in reversed(rows)}.values())[::-1]


def _calls(args, kwargs):
    """The calls as (args, kwargs), checked."""
    several = args if isinstance(args, list) else [args]
    named = kwargs if isinstance(kwargs, list) else [kwargs] * len(several)
    if not several:
        raise LatheError("'args' is an empty list, expected a call at least")
    if len(named) != len(several):
        raise LatheError(f"'kwargs' has {len(named)} calls and 'args' has {len(several)}")
    for i, (one, more) in enumerate(zip(several, named)):
        where = f" of call {i}" if len(several) > 1 else ""
        if not isinstance(one, tuple):
            raise LatheError(f"the arguments{where} are a tuple, got {type(one).__name__}")
        if more is not None and not isinstance(more, dict):
            raise LatheError(f"'kwargs'{where} is a dict, got {type(more).__name__}")
    return [(one, dict(more or {})) for one, more in zip(several, named)]


def _run(seen, model, calls, dynamic):
    """Runs the calls; what each frame saw, a row for each call."""
    function = model.forward if isinstance(model, torch.nn.Module) else model
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    trace = []
    with seen.watching():
        compiled = torch.compile(model, backend=seen.backend, dynamic=dynamic)
        for number, (args, kwargs) in enumerate(calls):
            try:
                described = values.locals_of(function, args, kwargs)
            except (TypeError, ValueError) as error:
                raise LatheError(f"call {number} does not fit the model: {error}") from None
            seen.begin_call(number, code, described)
            compiled(*args, **kwargs)
            trace.append(seen.end_call())
    return trace


# ---- what becomes of it -------------------------------------------------------------------------


def _manifest(model, **rest):
    return {
        "format": bundle.FORMAT,
        "version": bundle.VERSION,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "model": getattr(model, "__name__", type(model).__name__),
        **rest,
    }


def _seen(seen, model, trace, dynamic):
    entry = seen.entry_frame()
    causes = recompiles.with_causes(seen.recompiles, entry)
    rows_of_guards = {
        f"{row['frame']}_{row['compile']}": guards.parse(row["guards_text"])
        for row in seen.compiles.values()
        if row["guards_text"] is not None
    }
    manifest = _manifest(
        model,
        origin="dynamo",
        calls=len(trace),
        dynamic=dynamic,
        recompile_limit=torch._dynamo.config.recompile_limit,
        entry=entry,
        frames=[seen.frames[number] for number in sorted(seen.frames)],
        compiles=[_compile_row(row, rows_of_guards) for _, row in sorted(seen.compiles.items())],
    )
    files = {
        "breaks.jsonl": _lines(seen.breaks),
        "recompiles.jsonl": _lines(causes),
        "calls.jsonl": _lines(trace),
        "sources.json": _json(_sources(seen)),
    }
    for row in seen.compiles.values():
        name = f"{row['frame']}_{row['compile']}"
        if row["graph"]:
            files[f"graphs/{name}.py"] = row["graph"]["python"]
        if name in seen.documents:
            files[f"graphs/{name}.json"] = _json(seen.documents[name])
        if name in rows_of_guards:
            files[f"guards/{name}.txt"] = row["guards_text"]
            files[f"guards/{name}.json"] = _json(rows_of_guards[name])
    files = {bundle.MANIFEST: _json(manifest), **files}
    return Seen(manifest, seen.breaks, causes, rows_of_guards, files)


def _seen_single(model, document, python):
    graph = {"id": "0_0", "inputs": [], "ops": len(document["graph_module"]["graph"]["nodes"]),
             "ends": "return", "json": "graphs/0_0.json", "python": "graphs/0_0.py",
             "refused": None}
    compiled = {"frame": 0, "compile": 0, "call": 0, "graph": graph, "guards": None}
    frame = {"frame": 0, "function": "forward", "is_resumed": False, "file": "", "line": 0}
    manifest = _manifest(model, origin=single.origin(model), calls=1, dynamic=None,
                         recompile_limit=None, entry=None, frames=[frame], compiles=[compiled])
    files = {
        bundle.MANIFEST: _json(manifest),
        "breaks.jsonl": "",
        "recompiles.jsonl": "",
        "calls.jsonl": "",
        "sources.json": _json({}),
        "graphs/0_0.json": _json(document),
        "graphs/0_0.py": python,
    }
    return Seen(manifest, [], [], {}, files)


def _compile_row(row, rows_of_guards):
    name = f"{row['frame']}_{row['compile']}"
    kept = {key: value for key, value in row.items() if key != "guards_text"}
    kept["guards"] = f"guards/{name}" if name in rows_of_guards else None
    if row["graph"]:
        is_written = row["graph"]["refused"] is None
        kept["graph"] = {
            **row["graph"],
            "json": f"graphs/{name}.json" if is_written else None,
            "python": f"graphs/{name}.py",
        }
    return kept


def _sources(seen):
    """The lines of the frames' functions and around breaks, by file and number."""
    wanted = {}  # by the file's name on this machine
    for code in seen.codes.values():
        lines = [line for _, _, line in code.co_lines() if line]
        if lines:
            wanted.setdefault(code.co_filename, set()).update(range(code.co_firstlineno,
                                                                    max(lines) + 1))
    shared = {_shared_names.shared_name(file, seen.project): file for file in wanted}
    for row in seen.breaks:
        if file := shared.get(row["file"]):
            wanted[file].update(range(max(1, row["line"] - _AROUND), row["line"] + _AROUND + 1))
    found = {}
    for name, file in shared.items():
        lines = {n: linecache.getline(file, n).rstrip("\n") for n in sorted(wanted[file])}
        last = max((n for n, text in lines.items() if text), default=0)
        found[name] = {str(n): text for n, text in lines.items() if n <= last}
    return found


def _json(value):
    return json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n"


def _lines(rows):
    return "".join(_json(row) for row in rows)
