"""PyTorch's text of a frame's guards as rows. Needs no PyTorch.

The text is a tree; `| +- KIND: code  # line of Python  # place` is a guard, and above it stands the
manager of the value that it looks at.
"""

from __future__ import annotations

import re

_ROW = re.compile(r"^((?:\| )*)\+- ([A-Za-z_]+)(?:: (.*))?$")
_SOURCE = re.compile(r"source=(.+?), accessed_by=")
_LATENCY = re.compile(r"\n?Guard latency = [0-9.]+ us\s*$")


def text_of(payload):
    """PyTorch's text without the measured latency that its trace appends."""
    return _LATENCY.sub("", payload).strip("\n") + "\n"


def parse(text):
    """The guards of a text, in its order: kind, source, code, line and place of each.

    `source` is the value ("" for the whole frame's state), `code` what must hold, as PyTorch writes
    it; `line` and `place` the Python that asked for it, or "". A line that is none of these becomes
    a row of kind "other", so that nothing that PyTorch says is lost.
    """
    rows, managers = [], []
    for line in text.splitlines():
        if not line.strip() or line.startswith(("TREE_GUARD_MANAGER", "+- RootGuardManager")):
            continue
        match = _ROW.match(line)
        if match is None:
            rows.append(_row("other", "", line.strip()))
            continue
        depth, kind, rest = len(match[1]) // 2, match[2], match[3] or ""
        del managers[depth:]
        if kind.endswith("GuardManager"):
            source = _SOURCE.search(rest)
            managers += [""] * (depth - len(managers)) + [source[1] if source else ""]
            continue
        rows.append(_row(kind, next((m for m in reversed(managers) if m), ""), rest))
    return rows


def _row(kind, source, rest):
    code, _, comment = rest.partition("  # ")
    line, _, place = comment.rpartition("  # ")
    return {
        "kind": kind,
        "source": source,
        "code": code.rstrip(),
        "line": line,
        "place": place,
    }
