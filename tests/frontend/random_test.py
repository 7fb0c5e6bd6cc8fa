"""Random weights are the same bits in C++ and numpy, and numpy reads the .npz that Lathe writes."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "frontend/python")

try:
    import numpy as np

    from lathe import random
except ImportError as error:
    raise unittest.SkipTest(f"needs numpy: {error}") from None

BINARY = pathlib.Path("tests/frontend/write_random")

# name, Lathe's dtype, numpy's, shape
TENSORS = [
    ("fc.weight", "f32", "float32", (7, 33)),
    ("fc.bias", "f32", "float32", (1001,)),
    ("norm.weight", "f32", "float32", (64,)),
    ("bn.running_var", "f32", "float32", (65,)),
    ("bn.num_batches_tracked", "i64", "int64", ()),
    ("wte.weight", "f32", "float32", (5, 6)),
    ("a.half", "f16", "float16", (9, 9)),
    ("a.brain", "bf16", "bfloat16", (9, 9)),
    ("a.double", "f64", "float64", (3, 5)),
    ("embeddings.position_ids", "i64", "int64", (2, 9)),
    ("attn.mask", "bool", "bool", (1, 4, 4)),
    ("empty", "f32", "float32", (0, 4)),
    ("input.x", "f32", "float32", (6, 7)),
    ("input.ids", "i64", "int64", (123,)),
    ("input.ids32", "i32", "int32", (5,)),
    ("input.attention_mask", "i64", "int64", (4,)),
]


class RandomTest(unittest.TestCase):
    def test_same_bits_in_both_languages(self):
        for seed in (0, 1, 2**40 + 17):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "x.npz")
                words = [f"{name}:{dtype}:{'x'.join(map(str, shape))}"
                         for name, dtype, _, shape in TENSORS]
                subprocess.run([BINARY, path, str(seed), *words], check=True)
                with np.load(path) as arrays:
                    for name, _, dtype, shape in TENSORS:
                        make = random.input if name.startswith("input.") else random.weight
                        expected = make(name, dtype, shape, seed)
                        self.assertEqual(arrays[name].dtype, expected.dtype, name)
                        self.assertEqual(arrays[name].shape, shape, name)
                        self.assertEqual(arrays[name].tobytes(), expected.tobytes(), name)


if __name__ == "__main__":
    unittest.main()
