"""What dtypes PyTorch gives its operators' results, of every pair of dtypes, ranks and scalars.

A file says what each node's result is, and importing refuses what Lathe would make otherwise.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, "frontend/python")

try:
    import torch

    import lathe
except ImportError as error:
    raise unittest.SkipTest(f"needs torch: {error}") from None

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.float16, torch.bfloat16, torch.float32, torch.float64)
SCALARS = (True, 2, 1.5)
NOT_OF_BOOLS = {"pow", "clamp"}  # which Lathe refuses in words of its own
PAIRS = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "remainder": torch.remainder, "floor_divide": torch.floor_divide, "atan2": torch.atan2,
    "maximum": torch.maximum, "bitwise_and": torch.bitwise_and, "bitwise_xor": torch.bitwise_xor,
    "shift": torch.bitwise_left_shift, "less": torch.lt,
    "where": lambda a, b: torch.where(torch.ones(2, 3, dtype=torch.bool), a, b),
    "where_one": lambda a, b: torch.where(torch.ones((), dtype=torch.bool), a, b),
    "clamp": lambda a, b: torch.clamp(a, min=b), "addcmul": lambda a, b: torch.addcmul(a, b, a),
    "lerp": lambda a, b: torch.lerp(a, a, b), "masked_fill":
    lambda a, b: torch.masked_fill(a, torch.ones(2, 3, dtype=torch.bool), b),
}


class Every(torch.nn.Module):
    """The function of every pair that eager takes."""

    def __init__(self, function, operands, takes_bools):
        super().__init__()
        self.function, self.pairs = function, []
        for i, a in enumerate(operands):
            for j, b in enumerate(operands):
                if torch.is_tensor(a) or torch.is_tensor(b):
                    try:
                        made = function(a, b)
                    except (RuntimeError, TypeError):
                        continue
                    if takes_bools or made.dtype != torch.bool:
                        self.pairs.append((i, j))

    def forward(self, *tensors):
        operands = tensors + SCALARS
        return tuple(self.function(operands[i], operands[j]) for i, j in self.pairs)


class PromotionTest(unittest.TestCase):
    def expect_taken(self, name, function):
        tensors = tuple(torch.ones(shape, dtype=dtype) for dtype in DTYPES for shape in ((), (3,)))
        module = Every(function, tensors + SCALARS, name not in NOT_OF_BOOLS)
        self.assertGreater(len(module.pairs), 8)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = pathlib.Path(folder, f"{name}.pt2")
            torch.export.save(torch.export.export(module, tensors, strict=False), path)
            done = subprocess.run([LATHE, "compile", path, "--passes", "", "--emit", "graph"],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("return", done.stdout)

    def test_pairs(self):
        for name, function in PAIRS.items():
            with self.subTest(name):
                self.expect_taken(name, function)

    def test_integers_beside_halves_are_rounded_to_them(self):
        class Steps(torch.nn.Module):
            def forward(self, x, number):
                steps = torch.arange(1000)
                return (x * steps).float(), (x + steps) < steps, (x * number).float(), x / steps

        class Scaled(torch.nn.Module):
            def forward(self, x, number):
                steps = torch.arange(1000)
                return torch.add(x, steps, alpha=3), torch.sub(steps, x, alpha=2)

        for dtype, start in ((torch.bfloat16, 0), (torch.float16, 0.3)):
            args = (torch.linspace(start, 3, 1000).to(dtype), torch.tensor(257))
            # Sums of products are rounded twice or once, of which few are otherwise.
            for module, most in ((Steps(), 0), (Scaled(), 9)):
                with tempfile.TemporaryDirectory() as folder:
                    path = pathlib.Path(folder, "steps.pt2")
                    lathe.export(module, args, path=path)
                    for mine, eagers in zip(lathe.load(path)(*args), module(*args)):
                        is_other = (mine != eagers) & ~(mine.isnan() & eagers.isnan())
                        self.assertLessEqual(int(is_other.sum()), most)


if __name__ == "__main__":
    sys.exit(unittest.main())
