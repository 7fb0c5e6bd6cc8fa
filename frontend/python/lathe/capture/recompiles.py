"""One cause for the recompiles that a change brings about. Needs no PyTorch.

A change of an input recompiles every frame that sees it, and every frame behind: PyTorch reports
each, as if they were unrelated. Within a call the first recompile of a kind (a dtype, a size, ...)
is the cause, and the later ones follow from it.
"""

from __future__ import annotations

import re

_KINDS = [
    ("dtype", re.compile(r"dtype mismatch\. expected (\S+), actual (\S+)")),
    ("size", re.compile(r"size mismatch at index \d+\. expected (\d+), actual (\d+)")),
    ("size", re.compile(r"\.size\(\)\[\d+\]|\blen\(")),
    ("stride", re.compile(r"stride mismatch|\.stride\(\)")),
    ("rank", re.compile(r"rank mismatch")),
    ("requires_grad", re.compile(r"requires_grad mismatch")),
    ("device", re.compile(r"[Dd]evice (?:index )?mismatch")),
    ("dispatch keys", re.compile(r"dispatch key set mismatch")),
    ("global state", re.compile(r"GLOBAL_STATE|grad_mode|deterministic|autocast|num_threads")),
    ("type", re.compile(r"___check_type_id|expected type")),
    ("object", re.compile(r"___check_obj_id|is not ")),
    ("value", re.compile(r"==|!=|<=|>=")),
]
_ENTRY = re.compile(r"^\d+/\d+: ")
_FRAME = re.compile(r'^ *File "([^"\n]+)", line (\d+), in [^\n]*\n +([^\n]+)', re.MULTILINE)


def kind_of(reason):
    """What kind of change a reason of PyTorch's speaks of."""
    return next((kind for kind, pattern in _KINDS if pattern.search(reason)), "other")


def first_line(reason):
    """A reason without the compilation that it is of, and without its stack."""
    line = _ENTRY.sub("", reason.strip().partition("\n")[0])
    return re.sub(r"\s{2,}#.*$", "", line).strip()


def line_of(reason):
    """The user's line that asked for the guard, as `file`, `line` and `code`; {} for guards of
    tensors and of the frame's state, of which PyTorch does not say it."""
    frames = _FRAME.findall(reason)
    if not frames:
        return {}
    file, line, code = frames[-1]
    return {"file": file, "line": int(line), "code": code.strip()}


def nearest_reason(reasons):
    """The reason of the newest compilation, whose guards are nearest to the call's."""
    return reasons[0] if reasons else ""


def with_causes(recompiles, entry_frame):
    """The rows with `kind`, `reason` (one line), the line that asked for it where it is known, and
    `cause`: the index of the row that it follows from, its own when it is a cause.

    A value that the entry's frame compares is an argument, so it is a cause of its own.
    """
    rows, causes = [], {}
    for index, row in enumerate(recompiles):
        nearest = nearest_reason(row["reasons"])
        kind, reason = kind_of(nearest), first_line(nearest)
        is_argument = row["frame"] == entry_frame
        key = (row["call"], kind)
        cause = causes.get(key, index)
        if cause != index and is_argument and rows[cause]["reason"] != reason:
            cause = index
        causes.setdefault(key, cause)
        place = line_of(nearest)
        rows.append({**row, "kind": kind, "reason": reason, "cause": cause, **place})
    return rows
