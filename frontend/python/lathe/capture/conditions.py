"""Evaluates the conditions that PyTorch writes into guards, over values as data.

A condition comes from a file that anyone may have written, so it is never given to Python's `eval`:
its syntax tree is walked, and what is not arithmetic over sizes and numbers is unknown.
"""

from __future__ import annotations

import ast
import functools
import math
import operator

_MAX_CODE = 20_000  # characters
_MAX_BITS = 4096  # of a power

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_}
_COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_OPPOSITE = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
}
_FUNCTIONS = {
    "abs": abs,
    "bool": bool,
    "float": float,
    "int": int,
    "len": len,
    "max": max,
    "min": min,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.isnan": math.isnan,
    "math.sqrt": math.sqrt,
    "math.trunc": math.trunc,
}
# What a guard asks of a tensor, by the key that describes it.
_OF_TENSORS = {"size": "size", "shape": "size", "stride": "stride"}


class Unknown(Exception):
    """Nothing that was given says what the value is, or it is no arithmetic."""


def evaluate(code, values):
    """The value of an expression; `values` are descriptions by source, such as "L['x']"."""
    try:
        return _value(_tree(code), values)
    except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError):
        raise Unknown(code) from None


def holds(code, values):
    """Whether a condition holds, or None when it cannot be known."""
    try:
        return bool(evaluate(code, values))
    except Unknown:
        return None


def equality(code):
    """(the left side, as code) of a comparison with a constant, or None."""
    try:
        tree = _tree(code)
    except Unknown:
        return None
    is_equality = isinstance(tree, ast.Compare) and isinstance(tree.ops[0], ast.Eq)
    if is_equality and len(tree.ops) == 1 and isinstance(tree.comparators[0], ast.Constant):
        return ast.unparse(tree.left)
    return None


def negation(code):
    """The code of a condition that holds when this one, which is known, does not."""
    tree = _tree(code)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return ast.unparse(tree.operand)
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and type(tree.ops[0]) in _OPPOSITE:
        left, right = ast.unparse(tree.left), ast.unparse(tree.comparators[0])
        return f"{left} {_OPPOSITE[type(tree.ops[0])]} {right}"
    return f"not ({code})"


@functools.lru_cache(maxsize=4096)
def _tree(code):
    if len(code) > _MAX_CODE:
        raise Unknown("a condition of that length")
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unknown(code) from None


def _value(node, values):
    known = values.get(ast.unparse(node)) if isinstance(node, ast.Subscript) else None
    if known is not None or _is_given(node, values):
        return known
    kind = type(node)
    if kind is ast.Constant and isinstance(node.value, (int, float, str, type(None))):
        return node.value
    if kind is ast.BinOp:
        return _binary(node, values)
    if kind is ast.UnaryOp and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_plain(node.operand, values))
    if kind is ast.BoolOp:
        return _logical(node, values)
    if kind is ast.Compare:
        return _compare(node, values)
    if kind is ast.Subscript:
        return _item(node, values)
    if kind is ast.Attribute and node.attr in _OF_TENSORS:
        return _of_tensor(node, values)
    if kind is ast.Call and not node.keywords:
        return _call(node, values)
    raise Unknown(ast.unparse(node))


def _is_given(node, values):
    return isinstance(node, ast.Subscript) and ast.unparse(node) in values


def _plain(node, values):
    """A value that Python can compute with, not a description."""
    value = _value(node, values)
    if isinstance(value, dict):
        raise Unknown(ast.unparse(node))
    return value


def _number(node, values):
    value = _plain(node, values)
    if not isinstance(value, (int, float)):
        raise Unknown(ast.unparse(node))
    return value


def _binary(node, values):
    left, right = _number(node.left, values), _number(node.right, values)
    if isinstance(node.op, ast.Pow):
        if abs(right) * max(1, int(abs(left)).bit_length()) > _MAX_BITS:
            raise Unknown(ast.unparse(node))
        return left**right
    if type(node.op) not in _BINARY:
        raise Unknown(ast.unparse(node))
    return _BINARY[type(node.op)](left, right)


def _logical(node, values):
    """As Python has it, but a side that is unknown matters only when the others do not decide."""
    decides = isinstance(node.op, ast.Or)
    unknown = None
    for side in node.values:
        try:
            if bool(_plain(side, values)) == decides:
                return decides
        except Unknown as error:
            unknown = error
    if unknown is not None:
        raise unknown
    return not decides


def _compare(node, values):
    if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return _is_none(node, values)
    left = _plain(node.left, values)
    for op, side in zip(node.ops, node.comparators):
        if type(op) not in _COMPARE:
            raise Unknown(ast.unparse(node))
        right = _plain(side, values)
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _is_none(node, values):
    side = node.comparators[0]
    if len(node.ops) > 1 or not isinstance(side, ast.Constant) or side.value is not None:
        raise Unknown(ast.unparse(node))
    # A description is of something.
    return (_value(node.left, values) is None) == isinstance(node.ops[0], ast.Is)


def _item(node, values):
    base, index = _value(node.value, values), _plain(node.slice, values)
    if isinstance(base, dict):
        base = base.get("dict")
    if isinstance(base, list) and type(index) is int or isinstance(base, dict):
        return base[index]
    raise Unknown(ast.unparse(node))


def _of_tensor(node, values):
    tensor = _value(node.value, values)
    if not isinstance(tensor, dict) or _OF_TENSORS[node.attr] not in tensor:
        raise Unknown(ast.unparse(node))
    return tensor[_OF_TENSORS[node.attr]]


def _call(node, values):
    if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TENSORS and not node.args:
        return _of_tensor(node.func, values)
    function = _FUNCTIONS.get(ast.unparse(node.func))
    if function is None:
        raise Unknown(ast.unparse(node))
    if function is len:
        value = _value(node.args[0], values)
        return len(value["dict"] if isinstance(value, dict) else value)
    return function(*[_number(arg, values) for arg in node.args])
