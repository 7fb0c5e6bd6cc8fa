"""Weights and inputs that any machine can rebuild from a seed, bit for bit as Lathe makes them.

The rules and the arithmetic are described in frontend/weights/random.h; this is the same in numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_STEPS = 8388608  # 2**23
_FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Rule:
    kind: str  # uniform, integers, arange, constant, lower_triangle
    centre: int = 0
    step: np.float32 = np.float32(0)
    low: int = 0
    high: int = 0


def _uniform(centre: float, half_width: float) -> Rule:
    return Rule("uniform", int(np.rint(centre / half_width * _STEPS)),
                np.float32(half_width / _STEPS))


def weight_rule(name: str, dtype: str, shape: tuple[int, ...]) -> Rule:
    """What the weight `name` is filled with; dtype is numpy's name, or "bfloat16"."""
    last = name.rsplit(".", 1)[-1]
    if dtype == "bool":
        square = len(shape) >= 2 and shape[-1] == shape[-2]
        return Rule("lower_triangle") if square else Rule("constant", low=1)
    if dtype not in _FLOATS:
        return Rule("arange") if "position_ids" in last else Rule("constant")
    if "running_var" in last:
        return _uniform(1, 0.5)
    if "running_mean" in last or "bias" in last or "beta" in last:
        return _uniform(0, 0.05)
    if len(shape) < 2:
        return _uniform(1, 0.1)
    if "embed" in name or not {"wte", "wpe"}.isdisjoint(name.split(".")):
        return _uniform(0, 0.035)
    return _uniform(0, math.sqrt(3 / max(1.0, float(math.prod(shape[1:])))))


def input_rule(name: str, dtype: str, low: int = 0, high: int = 100) -> Rule:
    """What the input `name` is filled with; the range is that of integers."""
    if dtype in _FLOATS:
        return _uniform(0, math.sqrt(3.0))
    if dtype == "bool" or "mask" in name:
        return Rule("constant", low=1)
    if "token_type" in name:
        return Rule("constant")
    if "position_ids" in name:
        return Rule("arange")
    return Rule("integers", low=low, high=high)


def _fnv1a(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def _philox(count: int, name: str, seed: int) -> np.ndarray:
    """`count` words of Philox 4x32-10."""
    mask = np.uint64(0xFFFFFFFF)
    low = np.uint64(32)
    block = np.arange((count + 3) // 4, dtype=np.uint64)
    hashed = _fnv1a(name)
    c0, c1 = block & mask, block >> low
    c2 = np.full_like(block, hashed & 0xFFFFFFFF)
    c3 = np.full_like(block, hashed >> 32)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c2 = (p1 >> low) ^ c1 ^ np.uint64(k0), (p0 >> low) ^ c3 ^ np.uint64(k1)
        c1, c3 = p1 & mask, p0 & mask
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).reshape(-1)[:count]


def _round_bfloat16(values: np.ndarray) -> np.ndarray:
    """bfloat16 as raw 16-bit words, since numpy has no such type."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
            ).astype(np.uint16)


def _values(name: str, shape: tuple[int, ...], rule: Rule, seed: int) -> np.ndarray:
    count = math.prod(shape)
    columns = shape[-1] if shape and shape[-1] else 1
    if rule.kind == "uniform":
        words = (_philox(count, name, seed) >> np.uint64(8)).astype(np.int32)
        return (words - np.int32(_STEPS) + np.int32(rule.centre)).astype(np.float32) * rule.step
    if rule.kind == "integers":
        span = np.uint64(rule.high - rule.low)
        return rule.low + ((_philox(count, name, seed) * span) >> np.uint64(32)).astype(np.int64)
    if rule.kind == "arange":
        return np.arange(count, dtype=np.int64) % columns
    if rule.kind == "constant":
        return np.full(count, rule.low, dtype=np.int64)
    index = np.arange(count, dtype=np.int64)
    return index % columns <= index // columns % columns


def tensor(name: str, dtype: str, shape: tuple[int, ...], rule: Rule, seed: int) -> np.ndarray:
    """A tensor filled by a rule; bfloat16 comes as raw uint16."""
    values = _values(name, tuple(shape), rule, seed)
    values = _round_bfloat16(values) if dtype == "bfloat16" else values.astype(dtype)
    return values.reshape(shape)


def weight(name: str, dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """The weight that `random:SEED` gives a model."""
    return tensor(name, dtype, shape, weight_rule(name, dtype, tuple(shape)), seed)


def input(name: str, dtype: str, shape: tuple[int, ...], seed: int, low: int = 0,
          high: int = 100) -> np.ndarray:
    """The input that a run without given inputs uses."""
    return tensor(name, dtype, shape, input_rule(name, dtype, low, high), seed)
