"""Graphs that packages are made of in tests, and what goes into them."""

import pathlib

import numpy as np

from lathe import random

GRAPHS = pathlib.Path("experiments/graphs").resolve()
DTYPES = {"f32": np.float32, "i64": np.int64, "bool": np.bool_}

TOTAL = """dim s0 in [0, 64]
func @main(%x: f32[s0]) -> f32[] {
  %t = constant() {name = "t", dtype = f32, shape = []}
  %s = sum(%x) {dim = [0]}
  %u = add(%t, %s)
  return %u
  mutates "t" = %u
}
"""
CONSTANT = """func @main(%x: f32[3]) -> f32[3], f32[4, 4] {
  %w = constant() {name = "w", dtype = f32, shape = [4, 4]}
  %v = permute(%w) {dims = [1, 0]}
  %y = mul(%x, %x)
  return %y, %v
}
"""
NOTHING = """func @main(%x: f32[3]) -> f32[3] {
  return %x
}
"""
# One program holds for even sizes alone.
PAIRS = """dim s0 in [2, 64]
guard s0 % 2 == 0
func @main(%x: f32[s0]) -> f32[s0//2, 2] {
  %y = reshape(%x) {shape = [s0//2, 2]}
  return %y
}
"""
# Positions are below the size that a call has.
ROWS = """dim s0 in [1, 64]
func @main(%x: f32[s0], %i: i64[3]) -> f32[3] {
  assert_index(%i) {low = -s0, high = s0, message = "index {index} of {size}"}
  %y = index(%x, [%i])
  return %y
}
"""
IN_PLACE = """func @main(%x: f32[4]) -> f32[4] {
  %y = add_(%x, %x)
  return %y
}
"""


def graph(name):
    """The file of a graph without weights."""
    return GRAPHS / f"{name}.json.gz"


def model_inputs(model):
    """Arrays for the inputs at the sizes that the model was loaded for."""
    dims = model.info["dims"]
    return [
        random.input(
            info["name"], DTYPES[info["dtype"]],
            [dims.get(d, d) if isinstance(d, str) else d for d in info["shape"]], 0,
        )
        for info in model.info["inputs"]
    ]


def bytes_of(result):
    results = result if isinstance(result, (tuple, list)) else [result]
    return b"".join(np.asarray(array).tobytes() for array in results)
