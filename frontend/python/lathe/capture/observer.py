"""Watches Dynamo while a model runs: what it compiles, why, and under which guards.

All of it comes from PyTorch's structured trace (the logger that TORCH_TRACE writes) and from a
backend of ours, both joined by the compile id; the backend runs each graph in eager.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import types

import torch
from torch._guards import CompileContext

from lathe import _shared_names
from lathe.capture import aten, breaks, guards, values

_RESUMED = "torch_dynamo_resume_in_"
_STATE = re.compile(r"\._(?:parameters|buffers)\[")  # in sources: weights and buffers
_METRICS = (
    ("guards", "guard_count"),
    ("ops", "graph_op_count"),
    ("seconds", "entire_frame_compile_time_s"),
    ("failure", "fail_reason"),
)


class Observer:
    """What was seen: rows of frames, compilations, breaks and recompiles, in the order of time."""

    def __init__(self, project):
        self.project = project
        self.call = None  # the number of the call that runs
        self.frames = {}  # by number
        self.compiles = {}  # by (frame, compile)
        self.breaks, self.recompiles = [], []
        self.documents = {}  # torch.export's JSON, by graph id
        self.visits = []  # of one call: which graph ran, on what
        self.codes = {}  # the code objects of frames, by number
        self.entry_code = None

    @contextlib.contextmanager
    def watching(self):
        """Dynamo is reset before and after, since what was compiled before would not be seen."""
        log = logging.getLogger("torch.__trace")
        level, propagate = log.level, log.propagate
        handler = _Handler(self)
        hook = torch._dynamo.convert_frame.register_bytecode_hook(self._see_code)
        torch._dynamo.reset()
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        log.propagate = False
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(level)
            log.propagate = propagate
            hook.remove()
            torch._dynamo.reset()

    # ---- as a backend ---------------------------------------------------------------------------

    def backend(self, gm, example_inputs):
        """Takes a graph of Dynamo's, and gives it back to run in eager."""
        frame, compile_number = _numbers(CompileContext.current_compile_id())
        row = self._compile(frame, compile_number)
        graph_id = f"{frame}_{compile_number}"
        inputs = [_input_row(node) for node in gm.graph.nodes if node.op == "placeholder"]
        document, refused = aten.lower(gm, example_inputs, self.project)
        reason = getattr(gm, "compile_subgraph_reason", None)
        row["graph"] = {
            "id": graph_id,
            "inputs": inputs,
            "ops": sum(node.op.startswith("call_") for node in gm.graph.nodes),
            "ends": "break" if reason is not None and reason.graph_break else "return",
            "python": gm.print_readable(print_output=False) + "\n",
            "refused": refused,
        }
        if document is not None:
            self.documents[graph_id] = document

        def run(*args):
            self._see_visit(frame, graph_id, inputs, args)
            return gm.forward(*args)

        return run

    def begin_call(self, number, entry_code, entry_locals):
        self.call, self.entry_code, self.visits = number, entry_code, []
        if entry_locals is not None:
            looked_at = {f"L[{name!r}]": value for name, value in entry_locals.items()}
            self.visits.append({"frame": None, "graph": None, "values": looked_at})

    def end_call(self):
        """The visits of the call; the entry's frame is known by now."""
        entry = self.entry_frame()
        for visit in self.visits:
            visit["frame"] = entry if visit["frame"] is None else visit["frame"]
        return {"call": self.call, "visits": [v for v in self.visits if v["frame"] is not None]}

    def entry_frame(self):
        """The number of the frame that a call begins in, or None: Dynamo skipped it."""
        return next((f for f, code in self.codes.items() if code is self.entry_code), None)

    def _see_visit(self, frame, graph_id, inputs, args):
        first = self.visits[0] if self.visits else None
        if first and first["frame"] is None and self.codes.get(frame) is self.entry_code:
            first["frame"], first["graph"] = frame, graph_id
            return
        looked_at = {
            row["source"]: values.describe(arg)
            for row, arg in zip(inputs, args)
            if row["source"] and not row["is_state"]
        }
        self.visits.append({"frame": frame, "graph": graph_id, "values": looked_at})

    # ---- as a reader of the trace ---------------------------------------------------------------

    def see_artifact(self, frame, compile_number, metadata, payload):
        name = metadata["artifact"]["name"]
        if name == "dynamo_graph_break_reason":
            row = {"frame": frame, "compile": compile_number, "call": self.call}
            row.update(breaks.parse(payload, self.project))
            if not any(_is_same_break(row, seen) for seen in self.breaks):
                self.breaks.append(row)
        elif name == "recompile_reasons":
            # One reason is traced as it is, several as JSON.
            reasons = json.loads(payload) if payload.startswith("[") else [payload]
            reasons = [_shared_names.rewrite_frames(text, self.project) for text in reasons]
            row = {"frame": frame, "compile": compile_number, "call": self.call}
            self.recompiles.append({**row, "reasons": reasons})

    def see_guards(self, frame, compile_number, payload):
        self._compile(frame, compile_number)["guards_text"] = guards.text_of(payload)

    def see_metrics(self, frame, compile_number, metrics):
        """A compilation ended, well or not."""
        row = self._compile(frame, compile_number)
        row.update({ours: metrics.get(theirs) for ours, theirs in _METRICS})
        if row["failure"]:
            row["failure"] = _shared_names.rewrite_frames(row["failure"].strip(), self.project)
        name = metrics.get("co_name") or ""
        self.frames.setdefault(frame, {
            "frame": frame,
            "function": name.removeprefix(_RESUMED).rpartition("_at_")[0]
            if name.startswith(_RESUMED) else name,
            "is_resumed": name.startswith(_RESUMED),
            "file": _shared_names.shared_name(metrics.get("co_filename") or "", self.project),
            "line": metrics.get("co_firstlineno") or 0,
        })

    def _see_code(self, old_code, _):
        compile_id = CompileContext.current_compile_id()
        if compile_id is not None and isinstance(old_code, types.CodeType):
            self.codes[_numbers(compile_id)[0]] = old_code

    def _compile(self, frame, compile_number):
        row = {"frame": frame, "compile": compile_number, "call": self.call, "graph": None,
               "guards_text": None}
        return self.compiles.setdefault((frame, compile_number), row)


class _Handler(logging.Handler):
    """Hands the records of the trace that matter to an observer."""

    def __init__(self, observer):
        super().__init__(logging.DEBUG)
        self.observer = observer

    def emit(self, record):
        metadata = getattr(record, "metadata", {})
        frame, compile_number = metadata.get("frame_id"), metadata.get("frame_compile_id")
        if frame is None or compile_number is None:
            return
        payload = getattr(record, "payload", None) or ""
        if "artifact" in metadata:
            self.observer.see_artifact(frame, compile_number, metadata, payload)
        elif "dynamo_cpp_guards_str" in metadata:
            self.observer.see_guards(frame, compile_number, payload)
        elif "compilation_metrics" in metadata:
            self.observer.see_metrics(frame, compile_number, metadata["compilation_metrics"])


def _is_same_break(a, b):
    """PyTorch traces a break again when it starts a compilation anew."""
    same_compile = (a["frame"], a["compile"]) == (b["frame"], b["compile"])
    return same_compile and breaks.key(a) == breaks.key(b)


def _numbers(compile_id):
    return compile_id.frame_id, compile_id.frame_compile_id


def _input_row(node):
    """Where an input of a graph comes from, in the words of guards."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "") if source is not None else ""
    value = node.meta.get("example_value")
    text = name() if callable(name) else name  # a method until torch 2.12
    return {
        "name": node.name,
        "source": text,
        "is_state": isinstance(value, torch.nn.Parameter) or bool(_STATE.search(text)),
    }
