"""lathe.capture.replay: which calls recompile, from a bundle's guards alone. Needs no PyTorch."""

from __future__ import annotations

import dataclasses

from lathe._handle import LatheError
from lathe.capture import bundle as bundles
from lathe.capture import checks as guards_as_checks
from lathe.capture.values import check

_MAX_CALLS = 100_000


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a visit of a frame does."""

    call: int
    frame: int
    graph: str | None  # what serves it; None: it runs in eager, the limit of recompiles is reached
    is_compiled: bool  # this visit compiles it
    is_recompile: bool  # and there was one before
    is_derived: bool  # the bundle has no such compilation; its guards are Lathe's guess
    reasons: dict  # by compilation that did not serve ("0/1"): all of its guards that fail
    assumed: int  # guards of what serves it that nothing given decides; they are taken to hold

    def __str__(self):
        served = self.graph or "eager: the limit of recompiles is reached"
        what = "compiled" if self.is_compiled else "served by"
        what = "recompiled" if self.is_recompile else what
        lines = [f"call {self.call}, frame {self.frame}: {what} {served}"]
        return "\n".join([*lines, *(f"  {compiled}: {'; '.join(failing)}"
                                     for compiled, failing in self.reasons.items())])


@dataclasses.dataclass
class _Entry:
    """A compilation: its id, what it checks, and how many of its guards cannot be checked."""

    graph: str
    checks: list
    assumed: int
    is_derived: bool = False

    def failures(self, values):
        return [reason for check in self.checks for reason in check.failures(values)]

    def unknown(self, values):
        return self.assumed + sum(not check.is_known(values) for check in self.checks)


@dataclasses.dataclass
class _Frame:
    """What Dynamo keeps for a code object: its compilations, and which were used last."""

    number: int
    known: list  # the bundle's, in the order in which they were compiled
    compiled: list  # so far, in that order
    recent: list  # the same, the last used first


def replay(bundle, calls=None, *, cold=False):
    """Predicts what a trace of calls does under the guards of a bundle: a list of Prediction.

    bundle: its path. calls: a list; a call is a dict of the arguments by name, for the frame that a
    call begins in, or a list of visits {"frame": 1, "values": {"L['y']": ...}} for other frames
    too, as calls.jsonl has them. Values are descriptions (lathe.capture.describe makes them of
    tensors); None replays the calls that were captured. cold: nothing is compiled at first;
    otherwise all that the bundle has is.

    A visit that nothing serves takes the bundle's next compilation that would serve it; without
    one, its guards are derived: a size or number that changed becomes a symbol, as with
    dynamic=None, and such predictions say so. Guards on what is not given hold. PyTorch names one
    failing guard of a compilation, whichever it happened to ask first; here all are named. The
    frames that resume after a break see values of their own: visits that are not given are not
    predicted.
    """
    opened = bundles.Bundle(bundle)
    manifest = opened.manifest
    entry, limit = manifest.get("entry"), manifest.get("recompile_limit")
    frames = _frames(opened, cold)
    given = opened.rows("calls.jsonl") if calls is None else calls
    if len(given) > _MAX_CALLS:
        raise LatheError(f"a trace has {len(given)} calls, at most {_MAX_CALLS}")
    predictions = []
    for number, call in enumerate(given):
        for visit in _visits(call, number, entry):
            frame = frames.get(visit["frame"])
            if frame is None:
                names = ", ".join(str(f) for f in sorted(frames))
                raise LatheError(f"call {number} visits frame {visit['frame']!r}, which has no "
                                 f"guards in the bundle; those that have: {names or 'none'}")
            seen = _visit(frame, visit["values"], manifest.get("dynamic"), limit)
            predictions.append(Prediction(number, frame.number, *seen))
    return predictions


def _frames(opened, cold):
    frames = {}
    for row in _list(opened.manifest, "compiles"):
        if not isinstance(row, dict) or not isinstance(row.get("guards"), str):
            continue
        number, compile_number = row.get("frame"), row.get("compile")
        rows = opened.json(row["guards"] + ".json")
        if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
            raise LatheError(f"'{row['guards']}.json' of '{opened.path}' is no list of guards")
        found, assumed = guards_as_checks.of_rows(rows)
        frame = frames.setdefault(number, _Frame(number, [], [], []))
        frame.known.append(_Entry(f"{number}_{compile_number}", found, assumed))
    for frame in frames.values():
        if not cold:
            frame.compiled = list(frame.known)
            frame.recent = frame.known[::-1]
    return frames


def _list(manifest, key):
    if not isinstance(manifest.get(key), list):
        raise LatheError(f"'{key}' of the manifest is no list")
    return manifest[key]


def _visits(call, number, entry):
    """A call as visits, checked."""
    if isinstance(call, dict) and "visits" in call and isinstance(call["visits"], list):
        call = call["visits"]
    if isinstance(call, dict):
        if entry is None:
            raise LatheError("the bundle has no frame that calls begin in; name frames in visits")
        values = {f"L[{name!r}]": value for name, value in call.items()}
        call = [{"frame": entry, "values": values}]
    if not isinstance(call, list):
        raise LatheError(f"call {number} is a dict of arguments or a list of visits, got "
                         f"{type(call).__name__}")
    for visit in call:
        if not isinstance(visit, dict) or not isinstance(visit.get("values"), dict):
            raise LatheError(f"a visit of call {number} is {{'frame': ..., 'values': {{...}}}}")
        if not isinstance(visit.get("frame"), int):
            raise LatheError(f"a visit of call {number} has frame {visit.get('frame')!r}, a number "
                             "was expected")
        for source, value in visit["values"].items():
            check(value, f"call {number}: {source}")
    return call


def _visit(frame, values, dynamic, limit):
    reasons = {}
    for entry in frame.recent:
        failing = entry.failures(values)
        if not failing:
            frame.recent.remove(entry)
            frame.recent.insert(0, entry)
            return entry.graph, False, False, entry.is_derived, {}, entry.unknown(values)
        reasons[entry.graph.replace("_", "/")] = failing
    if isinstance(limit, int) and len(frame.compiled) >= limit:
        return None, False, False, False, reasons, 0
    entry = _next_entry(frame, values, dynamic)
    is_recompile = bool(frame.compiled)
    frame.compiled.append(entry)
    frame.recent.insert(0, entry)
    return (entry.graph, True, is_recompile, entry.is_derived, reasons,
            entry.unknown(values))


def _next_entry(frame, values, dynamic):
    for entry in frame.known:
        if entry not in frame.compiled and not entry.failures(values):
            return entry
    nearest = (frame.compiled or frame.known)[-1]
    checks = guards_as_checks.adapt(nearest.checks, values, dynamic)
    return _Entry(f"{frame.number}_{len(frame.compiled)}", checks, nearest.assumed, True)
