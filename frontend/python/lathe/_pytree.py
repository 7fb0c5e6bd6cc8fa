"""Nested arguments and results, flattened as torch.utils._pytree does, without PyTorch.

A spec is the JSON that an exported program carries: [1, {"type", "context", "children_spec"}]. It
is read once, into a tree of Spec that every call walks.
"""

import collections
import json

DICTS = ("dict", "OrderedDict", "defaultdict")


class TreeError(ValueError):
    """The arguments are not nested as the model was exported."""


def parse_spec(spec):
    """The root of the tree."""
    if not isinstance(spec, list) or len(spec) != 2 or spec[0] != 1:
        raise TreeError(f"unknown pytree protocol: {str(spec)[:60]}")
    return Spec(spec[1], "the arguments")


class Spec:
    """A leaf, whose kind is None, or a container with its children."""

    def __init__(self, spec, where):
        self.where = where  # in errors: "the arguments[0][1]"
        # The last part of the type's name: "tuple", "dict", "OrderedDict", ...
        self.kind = None if spec["type"] is None else str(spec["type"]).rsplit(".", 1)[-1]
        parts = [] if self.kind is None else spec["children_spec"]
        self.children = [Spec(part, f"{where}[{i}]") for i, part in enumerate(parts)]
        self.is_flat = all(child.kind is None for child in self.children)
        self.is_dict = self.kind in DICTS
        self.read_keys(decode(spec.get("context")))
        self.build = self.builder()

    def read_keys(self, context):
        """Keys of a dict's children, or the fields of a class's."""
        if isinstance(context, dict):  # a defaultdict has its factory beside its keys
            context = context.get("dict_context")
        # A dataclass has two lists of fields: with a value, and None when it was exported. The
        # latter have no child.
        is_pair = isinstance(context, list) and list(map(type, context)) == [list, list]
        self.is_dataclass = is_pair and not self.is_dict
        keys, absent = context if self.is_dataclass else (context, [])
        self.keys = [hashable(key) for key in keys] if isinstance(keys, list) else []
        self.key_set, self.absent = frozenset(self.keys), absent

    def builder(self):
        """What makes this container of its children's values.

        Classes that this module does not know become dicts of their fields, or tuples.
        """
        known = {"tuple": tuple, "list": list, "deque": collections.deque}
        if self.kind in known:
            return known[self.kind]
        if len(self.keys) != len(self.children):
            return tuple
        if self.kind == "OrderedDict":
            return lambda values: collections.OrderedDict(zip(self.keys, values))
        absent = dict.fromkeys(self.absent)
        return lambda values: dict(zip(self.keys, values)) | absent


def decode(context):
    """The context, which is JSON inside JSON for dicts and null for tuples and lists."""
    try:
        return json.loads(context) if isinstance(context, str) else context
    except ValueError:
        return context


def hashable(key):
    """A key that is a tuple is a list in JSON."""
    return tuple(map(hashable, key)) if isinstance(key, list) else key


def field_values(tree, spec):
    """Values of a class's fields: of an object that has them, or of a dict in its place."""

    def field(key):
        return tree.get(key) if isinstance(tree, dict) else getattr(tree, str(key), None)

    def has(key):
        found = key in tree if isinstance(tree, dict) else hasattr(tree, str(key))
        return found and not (spec.is_dataclass and field(key) is None)

    for key in spec.keys:
        if not has(key):
            raise TreeError(
                f"{spec.where}: expected '{spec.kind}' with the fields {spec.keys}, got "
                f"{type(tree).__name__} without '{key}'"
            )
    for key in spec.absent:
        if has(key):
            raise TreeError(f"{spec.where}: the field '{key}' was exported as None, got a value")
    return [field(key) for key in spec.keys]


def values_of(tree, spec):
    """A value for every child, in the order of `spec`."""
    if spec.is_dict:
        if not isinstance(tree, dict) or tree.keys() != spec.key_set:
            found = sorted(map(str, tree)) if isinstance(tree, dict) else type(tree).__name__
            expected = f"expected a dict with the keys {spec.keys}"
            raise TreeError(f"{spec.where}: {expected}, got {found}")
        values = [tree[key] for key in spec.keys]
    elif isinstance(tree, (tuple, list, collections.deque)):
        values = tree
    else:
        values = field_values(tree, spec)
    if len(values) != len(spec.children):
        expected = f"expected {len(spec.children)} values"
        raise TreeError(f"{spec.where}: {expected}, got {len(values)}")
    return values


def flatten(tree, spec):
    """Leaves of `tree` in the order of `spec`; a different nesting is a TreeError."""
    if spec.kind is None:
        return [tree]
    values = values_of(tree, spec)
    if spec.is_flat:
        return values
    pairs = zip(values, spec.children)
    return [leaf for value, child in pairs for leaf in flatten(value, child)]


def unflatten(leaves, spec):
    """The nesting of `spec` over an iterator of leaves."""
    if spec.kind is None:
        return next(leaves)
    return spec.build([unflatten(leaves, child) for child in spec.children])
