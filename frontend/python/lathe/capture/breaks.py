"""PyTorch's text of a graph break as a row. Needs no PyTorch."""

from __future__ import annotations

import os
import re

from lathe import _shared_names

_FRAME = re.compile(r'^  File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>.*)$')
_PLACE = re.compile(r"^Graph break in user code at (?P<file>.*):(?P<line>\d+)$", re.M)
_URL = re.compile(r"For more details about this graph break, please visit: (\S+)")
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# What Dynamo says of every break of a kind before it says what this one is.
_PREAMBLE = re.compile(r"^Encountered graph break .*?:\n+", re.S)


def parse(text, project):
    """What a break's text says: reason, explanation, hints, context, url, stack, and the line.

    `file`, `line` and `code` are the innermost of the user's: frames in PyTorch's own files are
    left out. `full` keeps PyTorch's words, without its own traceback.
    """
    head, _, traceback = text.partition("\nUser code traceback:\n")
    stack = _stack(traceback.partition("\nTraceback (most recent call last)")[0], project)
    reason = head.partition("Graph Break Reason: ")[2] or head
    place = _PLACE.search(head)
    mine = [frame for frame in stack if not frame["file"].startswith("torch/")]
    if not mine and place:
        file = _shared_names.shared_name(place["file"], project)
        mine = [{"file": file, "line": int(place["line"]), "function": "", "code": ""}]
    at = mine[-1] if mine else {"file": "", "line": 0, "function": "", "code": ""}
    return {**_reason(_shared_names.rewrite_frames(reason, project)), **at, "stack": mine}


def _reason(full):
    full = full.strip()
    body = _PREAMBLE.sub("", full, count=1)
    row = {"reason": body.partition("\n")[0].strip(), "explanation": "", "hints": [], "context": ""}
    for part in re.split(r"\n\s*(?=(?:Explanation|Hint|Developer debug context): )", body)[1:]:
        name, _, said = part.partition(": ")
        said = re.split(r"\n\n For more details", said)[0].strip()
        if name == "Hint":
            row["hints"].append(said)
        else:
            row["explanation" if name == "Explanation" else "context"] = said
    url = _URL.search(full)
    return {**row, "url": url[1] if url else "", "full": full}


def _stack(traceback, project):
    """The frames of a traceback that the model's call has, outermost first."""
    frames = []
    for line in traceback.splitlines():
        if match := _FRAME.match(line):
            if match["file"].startswith(_OURS):
                frames.clear()  # the capture's call of the model, and who asked for it
                continue
            file = _shared_names.shared_name(match["file"], project)
            place = {"file": file, "line": int(match["line"]), "function": match["function"]}
            frames.append({**place, "code": ""})
        elif frames and not frames[-1]["code"]:
            frames[-1]["code"] = line.strip()
    return frames


def key(row):
    """What is the same of a break that several compilations met."""
    return row["file"], row["line"], row["reason"]
