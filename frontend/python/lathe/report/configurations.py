"""What a sweep varied: configurations with short names, and the models they ran.

A configuration is every setting of a row but its model, what it stands against, and the batch size
when that belongs to the model (as in PyTorch's dashboard, where each model has its own). Names say
only what differs within the file.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from lathe.report.results_file import settings_key

# In the order in which they are said.
AXES = ("backend", "mode", "options", "dynamic", "fullgraph", "target", "dtype", "batch", "threads")
# A heat map for each of their values, since models stand in another light there.
PANEL_AXES = ("target", "dtype")
_WORDS = {
    "dynamic": {None: "dynamic unset", True: "dynamic", False: "static"},
    "fullgraph": {True: "fullgraph", False: "breaks allowed", None: "fullgraph unset"},
    "mode": {None: "", "default": "default"},
    "target": {"cpu": "CPU", "cuda": "CUDA"},
}


@dataclass
class Configuration:
    key: str
    settings: dict
    label: str
    short_label: str  # without the axes of panels
    panel: str  # "CPU float32", or "" where there is only one
    rows: list


def split(rows):
    """The configurations of these rows, in the order of their first row."""
    axes = _varying_axes(rows)
    panel_axes = [axis for axis in PANEL_AXES if axis in axes]
    ignored = {"against"} | (set() if "batch" in axes else {"batch"})
    groups = defaultdict(list)
    for row in rows:
        kept = {name: value for name, value in row.settings.items() if name not in ignored}
        groups[settings_key(kept)].append(row)
    found = []
    for key, members in groups.items():
        settings = {name: value for name, value in members[0].settings.items()
                    if name not in ignored}
        found.append(Configuration(
            key, settings, label(settings, axes),
            label(settings, [axis for axis in axes if axis not in panel_axes]),
            " ".join(word(axis, settings.get(axis)) for axis in panel_axes), members))
    return found


def model_names(rows):
    """By (model, source): the model's name, with its source where a name has several."""
    sources = defaultdict(set)
    for row in rows:
        sources[row.model].add(row.source)
    return {(row.model, row.source):
            f"{row.model} ({row.source})" if len(sources[row.model]) > 1 else row.model
            for row in rows}


def label(settings, axes):
    words = [word("backend", settings.get("backend"))]
    words += [word(axis, settings.get(axis)) for axis in axes if axis != "backend"]
    return " ".join(w for w in words if w) or "unnamed backend"


def word(axis, value):
    """A value of an axis as it is said in a name."""
    if axis in _WORDS and _is_key(value) and value in _WORDS[axis]:
        return _WORDS[axis][value]
    if axis == "options":
        return options_word(value)
    if value is None:
        return "" if axis in AXES else f"{axis} unset"
    if axis == "batch":
        return f"batch {value:g}" if isinstance(value, (int, float)) else f"batch {value}"
    if axis == "threads":
        return "1 thread" if value == 1 else f"{value} threads"
    return str(value) if axis in ("backend", "mode", "target", "dtype") else f"{axis}={value}"


def options_word(options):
    """`−fuse_epilogue` for a pass that is taken out, else `name=value`."""
    if not isinstance(options, dict):
        return "" if options is None else str(options)
    words = []
    for name, value in options.items():
        tokens = str(value).split(",") if name == "passes" else []
        removed = [token[1:].strip() for token in tokens if token.strip().startswith("-")]
        if removed and tokens[0] == "default" and len(removed) + 1 == len(tokens):
            words += [f"\u2212{pass_name}" for pass_name in removed]
        else:
            words.append(f"{name}={value}")
    return " ".join(words)


def _is_key(value):
    return value is None or isinstance(value, (str, bool))


def _varying_axes(rows):
    """Axes with several values; of the batch size, only where one model has several."""
    names = [*AXES, *sorted({name for row in rows for name in row.settings}
                            - set(AXES) - {"against"})]
    varying = []
    for axis in names:
        values = defaultdict(set)
        for row in rows:
            model = (row.model, row.source) if axis == "batch" else None
            values[model].add(settings_key({"": row.settings.get(axis)}))
        if any(len(v) > 1 for v in values.values()):
            varying.append(axis)
    return varying
