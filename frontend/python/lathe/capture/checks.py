"""Guards that can be asked: rows of a bundle, checked against values, with PyTorch's words.

A check is one of the classes below. `failures(values)` are the reasons why it does not hold, first
as PyTorch gives them; `adapted(values, dynamic)` are the checks that Dynamo would have instead,
once the values have come. Needs no PyTorch.
"""

from __future__ import annotations

import ast
import dataclasses
import re

from lathe.capture import conditions

# PyTorch's own names, which its reasons use.
_DTYPES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "float16": "Half", "bfloat16": "BFloat16", "float32": "Float",
    "float64": "Double", "complex32": "ComplexHalf", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip
_KEYS = re.compile(r"DispatchKeySet\(([^)]*)\)")
# Keys that the state of a thread adds or hides, rather than the tensor has.
_KEYS_OF_THREADS = re.compile(r"BackendSelect|Autocast\w*")
_TYPE = re.compile(r"^___check_type_id\(.*\), type=<class '([\w.]+)'>$")
_TYPES_OF_DATA = {type(None): "NoneType", bool: "bool", int: "int", float: "float", str: "str"}
_AT_LEAST = re.compile(r"^(\d+) <= (L\[.+\])\.size\(\)\[(\d+)\]$")
# Not about values: the state of the process, identities of objects, marks of torch._dynamo.
_ASSUMED = {
    "DEFAULT_DEVICE", "DIMENSION_DYNAMIC_MARKING_GUARD", "GLOBAL_STATE", "ID_MATCH",
    "NO_TENSOR_ALIASING", "TORCH_FUNCTION_MODE_STACK",
}  # fmt: skip


def of_rows(rows):
    """The checks of a compilation, and how many of its guards cannot be asked."""
    checks, assumed = [], 0
    for row in rows:
        check = _check_of(row)
        if check is None:
            assumed += row.get("kind") not in ("DIMENSION_DYNAMIC_MARKING_GUARD",)
        else:
            checks.append(check)
    return checks, assumed


def _check_of(row):
    kind, source, code = (row.get(key) for key in ("kind", "source", "code"))
    if not all(isinstance(text, str) for text in (kind, source, code)):
        return None
    if kind in _ASSUMED or "L[" not in code:
        return None
    if kind == "TENSOR_MATCH":
        return TensorCheck.parse(source, code)
    if kind == "TYPE_MATCH":
        found = _TYPE.match(code)
        return TypeCheck(source, found[1]) if found else None
    return Condition(code)


def _shown(source):
    """A source as reasons name it: L['x'] is x."""
    return re.sub(r"L\['([^']*)'\]", r"\1", source)


def _given(source, values):
    try:
        return conditions.evaluate(source, values)
    except conditions.Unknown:
        return ...


def _is_tensor(value):
    return isinstance(value, dict) and ("size" in value or "dtype" in value)


@dataclasses.dataclass(frozen=True)
class Condition:
    """An expression that is true."""

    code: str

    def failures(self, values):
        return [_shown(self.code)] if conditions.holds(self.code, values) is False else []

    def is_known(self, values):
        return conditions.holds(self.code, values) is not None

    def adapted(self, values, dynamic):
        if not self.failures(values):
            return [self]
        if self.code.endswith(" is None"):
            return _checks_of_value(self.code.removesuffix(" is None"), values)
        left = conditions.equality(self.code)
        if left is None:
            return [Condition(conditions.negation(self.code))]
        actual = conditions.evaluate(left, values)
        is_number = isinstance(actual, (int, float)) and not isinstance(actual, bool)
        # Dynamo makes a symbol of a number that changed; 0 and 1 stay what they are.
        if is_number and dynamic is not False and actual not in (0, 1):
            return []
        return [Condition(f"{left} == {actual!r}")]


@dataclasses.dataclass(frozen=True)
class TypeCheck:
    """A value's class, by its full name."""

    source: str
    name: str

    def failures(self, values):
        value = _given(self.source, values)
        found = _TYPES_OF_DATA.get(type(value))
        if found is None and _is_tensor(value):
            found = "torch.Tensor"
            if self.name.startswith(("torch.", "__main__.")):
                return []
        if found is None or found == self.name:
            return []
        return [f"type({_shown(self.source)}) is {self.name}, got {found}"]

    def is_known(self, values):
        value = _given(self.source, values)
        return type(value) in _TYPES_OF_DATA or _is_tensor(value)

    def adapted(self, values, dynamic):
        return _checks_of_value(self.source, values) if self.failures(values) else [self]


@dataclasses.dataclass(frozen=True)
class TensorCheck:
    """A tensor's dtype, device, sizes and strides; None leaves a size or stride free."""

    source: str
    keys: frozenset
    dtype: str
    requires_grad: bool
    size: tuple
    stride: tuple

    @staticmethod
    def parse(source, code):
        """The check that PyTorch's text is of, or None."""
        try:
            tree = ast.parse(code, mode="eval").body
            named = {word.arg: ast.literal_eval(word.value) for word in tree.keywords}
            sizes, strides, is_trained = (named[n] for n in ("size", "stride", "requires_grad"))
            if not _are_sizes(sizes) or not _are_sizes(strides) or not isinstance(is_trained, bool):
                return None
            dtype = next(ast.unparse(a) for a in tree.args if ast.unparse(a).startswith("torch."))
            return TensorCheck(
                source,
                _keys(code),
                dtype.removeprefix("torch."),
                is_trained,
                tuple(sizes),
                tuple(strides),
            )
        except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, StopIteration,
                RecursionError, MemoryError):
            return None

    def is_known(self, values):
        return _given(self.source, values) is not ...

    def failures(self, values):
        value = _given(self.source, values)
        if value is ...:
            return []
        if not _is_tensor(value):
            found = _TYPES_OF_DATA.get(type(value), "object")
            # The stray quote is PyTorch's.
            return [f"expected type of '{_shown(self.source)}' to be a tensor type, "
                    f"' but found <class '{found}'>"]
        return [f"tensor '{_shown(self.source)}' {what}" for what in self._mismatches(value)]

    def _mismatches(self, value):
        """In PyTorch's order and words."""
        found = []
        keys = _keys(value.get("dispatch_keys", ""))
        if keys and self.keys and keys != self.keys:
            found.append(f"dispatch key set mismatch. expected {sorted(self.keys)}, "
                         f"actual {sorted(keys)}")
        dtype = value.get("dtype", self.dtype)
        if dtype != self.dtype:
            found.append(f"dtype mismatch. expected {_DTYPES.get(self.dtype, self.dtype)}, "
                         f"actual {_DTYPES.get(dtype, dtype)}")
        if value.get("requires_grad", self.requires_grad) != self.requires_grad:
            expected = int(self.requires_grad)
            found.append(f"requires_grad mismatch. expected requires_grad={expected}")
        size, stride = value.get("size"), value.get("stride")
        if size is not None and len(size) != len(self.size):
            return [*found, f"rank mismatch. expected {len(self.size)}, actual {len(size)}"]
        for what, expected, actual in (("size", self.size, size), ("stride", self.stride, stride)):
            found += [
                f"{what} mismatch at index {i}. expected {e}, actual {a}"
                for i, (e, a) in enumerate(zip(expected, actual or ()))
                if e is not None and e != a
            ]
        return found

    def adapted(self, values, dynamic):
        if not self.failures(values):
            return [self]
        value = _given(self.source, values)
        if not _is_tensor(value) or len(value.get("size", self.size)) != len(self.size):
            return _checks_of_value(self.source, values)
        size = list(self.size)
        for i, (expected, actual) in enumerate(zip(self.size, value.get("size", ()))):
            if expected is not None and expected != actual:
                size[i] = None if dynamic is not False and actual not in (0, 1) else actual
        stride = [
            e if e is None or e == a else (None if None in size else a)
            for e, a in zip(self.stride, value.get("stride", self.stride))
        ]
        return [dataclasses.replace(
            self,
            keys=_keys(value.get("dispatch_keys", "")) or self.keys,
            dtype=value.get("dtype", self.dtype),
            requires_grad=value.get("requires_grad", self.requires_grad),
            size=tuple(size),
            stride=tuple(stride),
        )]

    def of_symbols(self):
        """A size that is a symbol is neither 0 nor 1."""
        return [Condition(f"2 <= {self.source}.size()[{i}]")
                for i, size in enumerate(self.size) if size is None]

    def specialized(self, axis, size):
        sizes = [size if i == axis else s for i, s in enumerate(self.size)]
        return dataclasses.replace(self, size=tuple(sizes))


def _are_sizes(sizes):
    """Whole numbers, or None where any will do."""
    return isinstance(sizes, list) and all(s is None or type(s) is int for s in sizes)


def _keys(text):
    found = _KEYS.search(text)
    names = re.split(r",\s*", found[1]) if found else []
    return frozenset(name for name in names if name and not _KEYS_OF_THREADS.fullmatch(name))


def _checks_of_value(source, values):
    """What Dynamo guards of a value that it had seen as something else."""
    value = _given(source, values)
    if value is None:
        return [Condition(f"{source} is None")]
    if _is_tensor(value) and all(key in value for key in ("dtype", "size")):
        stride = value.get("stride", [None] * len(value["size"]))
        return [TensorCheck(source, _keys(value.get("dispatch_keys", "")), value["dtype"],
                            value.get("requires_grad", False), tuple(value["size"]),
                            tuple(stride))]
    if isinstance(value, (bool, int, float, str)):
        name = _TYPES_OF_DATA[type(value)]
        return [TypeCheck(source, name), Condition(f"{source} == {value!r}")]
    return [Condition(f"{source} is not None")]


def adapt(checks, values, dynamic):
    """The checks of what Dynamo would compile after these failed: changed sizes become symbols."""
    adapted = [new for check in checks for new in check.adapted(values, dynamic)]
    for check in checks:
        found = _AT_LEAST.match(check.code) if isinstance(check, Condition) else None
        if found is None or not check.failures(values):
            continue
        source, axis = found[2], int(found[3])
        size = conditions.evaluate(f"{source}.size()[{axis}]", values)
        adapted = [
            new.specialized(axis, size)
            if isinstance(new, TensorCheck) and new.source == source else new
            for new in adapted
            if not isinstance(new, Condition) or new.code != conditions.negation(check.code)
        ]
    symbols = [c for new in adapted if isinstance(new, TensorCheck) for c in new.of_symbols()]
    return list(dict.fromkeys([*adapted, *symbols]))
