"""Nested arguments and results, flattened as torch.utils._pytree does, without PyTorch.

A spec is the JSON that an exported program carries: [1, {"type", "context", "children_spec"}].
"""

import collections
import json

LEAF = None
DICTS = ("dict", "OrderedDict", "defaultdict")


class TreeError(ValueError):
    """The arguments are not nested as the model was exported."""


def parse_spec(spec):
    """The protocol's number removed: a tree of {"type", "context", "children_spec"} and None."""
    if not isinstance(spec, list) or len(spec) != 2 or spec[0] != 1:
        raise TreeError(f"unknown pytree protocol: {str(spec)[:60]}")
    return spec[1]


def is_leaf(spec):
    return spec["type"] is None


def children(spec):
    return spec["children_spec"]


def context(spec):
    """The context, which is JSON inside JSON for dicts and null for tuples and lists."""
    value = spec["context"]
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def kind(spec):
    """The last part of the type's name: "tuple", "dict", "OrderedDict", ..."""
    return str(spec["type"]).rsplit(".", 1)[-1]


def count_leaves(spec):
    return 1 if is_leaf(spec) else sum(count_leaves(child) for child in children(spec))


def dict_keys(spec):
    """Keys of a dict's children, or the fields of a class's."""
    keys = context(spec)
    if isinstance(keys, dict):  # a defaultdict has its factory beside its keys
        keys = keys.get("dict_context")
    if is_dataclass(spec):
        keys = keys[0]
    keys = keys if isinstance(keys, (list, tuple)) else []
    return [tuple(key) if isinstance(key, list) else key for key in keys]


def is_dataclass(spec):
    """A dataclass has two lists of fields: with a value, and None when it was exported."""
    keys = context(spec)
    is_pair = isinstance(keys, list) and len(keys) == 2 and all(isinstance(k, list) for k in keys)
    return is_pair and kind(spec) not in DICTS


def absent_fields(spec):
    """Fields of a dataclass that have no child, since they were None."""
    return context(spec)[1] if is_dataclass(spec) else []


def field_values(tree, spec, where):
    """Values of a class's fields: of an object that has them, or of a dict in its place."""

    def field(key):
        return tree.get(key) if isinstance(tree, dict) else getattr(tree, str(key), None)

    def has(key):
        found = key in tree if isinstance(tree, dict) else hasattr(tree, str(key))
        return found and not (is_dataclass(spec) and field(key) is None)

    for key in dict_keys(spec):
        if not has(key):
            raise TreeError(
                f"{where}: expected '{kind(spec)}' with the fields {dict_keys(spec)}, got "
                f"{type(tree).__name__} without '{key}'"
            )
    for key in absent_fields(spec):
        if has(key):
            raise TreeError(f"{where}: the field '{key}' was exported as None, got a value")
    return [field(key) for key in dict_keys(spec)]


def flatten(tree, spec, where="the arguments"):
    """Leaves of `tree` in the order of `spec`; a different nesting is a TreeError."""
    if is_leaf(spec):
        return [tree]
    parts = children(spec)
    if kind(spec) in DICTS:
        keys = dict_keys(spec)
        if not isinstance(tree, dict) or set(tree) != set(keys):
            found = sorted(map(str, tree)) if isinstance(tree, dict) else type(tree).__name__
            raise TreeError(f"{where}: expected a dict with the keys {keys}, got {found}")
        values = [tree[key] for key in keys]
    elif isinstance(tree, (tuple, list, collections.deque)):
        values = list(tree)
    else:
        values = field_values(tree, spec, where)
    if len(values) != len(parts):
        raise TreeError(f"{where}: expected {len(parts)} values, got {len(values)}")
    leaves = []
    for i, (value, part) in enumerate(zip(values, parts)):
        leaves += flatten(value, part, f"{where}[{i}]")
    return leaves


def unflatten(leaves, spec):
    """The nesting of `spec` over an iterator of leaves.

    Classes that this module does not know become dicts of their fields, or tuples.
    """
    if is_leaf(spec):
        return next(leaves)
    name = kind(spec)
    values = [unflatten(leaves, child) for child in children(spec)]
    if name == "tuple":
        return tuple(values)
    if name == "list":
        return values
    if name == "deque":
        return collections.deque(values)
    keys = dict_keys(spec) if context(spec) is not None else []
    if len(keys) != len(values):
        return tuple(values)
    if name == "OrderedDict":
        return collections.OrderedDict(zip(keys, values))
    return dict(zip(keys, values)) | dict.fromkeys(absent_fields(spec))
