"""What tests of the torch.compile backend have in common."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("frontend/python").resolve()))

import lathe  # noqa: E402
import lathe.backend  # noqa: E402


class BackendTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        lathe.backend.clear_reports()
        torch.manual_seed(0)
        self.enterContext(torch.no_grad())

    def compile(self, function, **options):
        return torch.compile(function, backend="lathe", **options)

    def report(self):
        """Of the latest graph."""
        return lathe.backend.reports()[-1]

    def expect(self, found, expected, tolerance=1e-5):
        """The same numbers, dtype, shape, strides and nesting."""
        if isinstance(expected, (tuple, list)):
            self.assertEqual(len(found), len(expected))
            for f, e in zip(found, expected):
                self.expect(f, e, tolerance)
            return
        if not isinstance(expected, torch.Tensor):
            self.assertEqual(found, expected)
            return
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
        if expected.numel() > 0:
            self.assertEqual(found.stride(), expected.stride())

    def expect_eager(self, function, *calls, in_eager=0, **options):
        """Each call gives what eager gives, on tensors of its own; returns what was compiled.
        in_eager: how many of the graphs' calls eager runs; None: any.
        """
        compiled = self.compile(function, **options)
        for args in calls:
            mine, theirs = (tuple(map(copy, args)) for _ in range(2))
            self.expect(compiled(*mine), function(*theirs))
            self.expect(mine, theirs)
        found = sum(f.count for r in lathe.backend.reports() for f in r.fallbacks)
        if in_eager is not None:
            self.assertEqual(found, in_eager, [str(r) for r in lathe.backend.reports()])
        return compiled


def copy(value):
    """With the strides of the original."""
    if not isinstance(value, torch.Tensor):
        return value
    if 0 in value.stride():
        return value  # nothing may write there
    twin = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return twin.copy_(value)
