"""What guards look at, as data: sizes and dtypes of tensors, numbers, texts, lists of them.

A tensor is {"dtype": "float32", "size": [4, 8], "stride": [8, 1], "device": "cpu",
"requires_grad": false, "dispatch_keys": "..."}; what is left out is taken as what a guard asks for.
None, booleans, numbers, texts, lists and dicts of texts are themselves; a tuple is a list;
everything else is {"type": "its name"}.
"""

from __future__ import annotations

import inspect
import math

from lathe._handle import LatheError

_MAX_ITEMS = 1000  # of a list or dict; the rest is left out, and so are guards that look at it
_MAX_DEPTH = 8


def describe(value, depth=0):
    """The description of any value; PyTorch is needed only where a tensor is."""
    if hasattr(value, "dtype") and hasattr(value, "stride") and hasattr(value, "requires_grad"):
        return _tensor(value)
    if value is None or isinstance(value, (bool, str)):
        return value
    if type(value) is int and abs(value) < 1 << 63:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if depth < _MAX_DEPTH and len_of(value) <= _MAX_ITEMS:
        if isinstance(value, (list, tuple)):
            return [describe(item, depth + 1) for item in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: describe(item, depth + 1) for key, item in value.items()}}
    return {"type": f"{type(value).__module__}.{type(value).__qualname__}"}


def len_of(value):
    return len(value) if isinstance(value, (list, tuple, dict)) else 0


def _tensor(tensor):
    import torch

    described = {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "requires_grad": bool(tensor.requires_grad),
        "dispatch_keys": str(torch._C._dispatch_keys(tensor)),
        "size": [int(size) for size in tensor.shape],
    }
    if tensor.layout == torch.strided:
        described["stride"] = [int(stride) for stride in tensor.stride()]
    return described


_OF_TENSORS = {
    "dtype": ("a text", lambda v: isinstance(v, str)),
    "device": ("a text", lambda v: isinstance(v, str)),
    "dispatch_keys": ("a text", lambda v: isinstance(v, str)),
    "requires_grad": ("true or false", lambda v: isinstance(v, bool)),
    "size": ("a list of sizes", lambda v: _are_numbers(v) and min(v, default=0) >= 0),
    "stride": ("a list of numbers", lambda v: _are_numbers(v)),
}


def _are_numbers(value):
    return isinstance(value, list) and all(type(item) is int for item in value)


def check(value, name, depth=0):
    """Refuses what is no description of a value; `name` says which one it is."""
    if depth > _MAX_DEPTH:
        raise LatheError(f"{name} is nested deeper than {_MAX_DEPTH} lists")
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(item, f"{name}[{i}]", depth + 1)
    elif isinstance(value, dict) and isinstance(value.get("dict"), dict):
        for key, item in value["dict"].items():
            check(item, f"{name}[{key!r}]", depth + 1)
    elif isinstance(value, dict):
        for key, field in value.items():
            expected, is_right = _OF_TENSORS.get(key, ("a text", lambda v: isinstance(v, str)))
            if not is_right(field):
                raise LatheError(f"{name}: '{key}' is {expected}, got {field!r}")
    elif value is not None and not isinstance(value, (bool, int, float, str)):
        raise LatheError(f"{name} is a {type(value).__name__}; lathe.capture.describe makes data of"
                         " it")


def locals_of(function, args, kwargs):
    """What a call's arguments are called in the function, described."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return {name: describe(value) for name, value in bound.arguments.items()}
