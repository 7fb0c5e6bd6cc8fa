"""Gradients that graphs of training call by name, against PyTorch, whose database lacks them."""

import itertools
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path("tests/ops").resolve()))

import torch  # noqa: E402
from opinfo_test import Checker, Lathe, Sample  # noqa: E402

aten = torch.ops.aten
randn = torch.randn


def convolutions():
    """(forward's arguments but bias) of every number of dims, with what convolutions may have."""
    shapes = [((2, 4, 9), (6, 4, 3)), ((2, 4, 7, 5), (6, 4, 3, 2)),
              ((1, 2, 4, 5, 3), (3, 2, 2, 2, 1))]
    for image, weight in shapes:
        n = len(image) - 2
        for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (1, 1, 2), (3, 0, 1)):
            if min(i + 2 * padding - dilation * (k - 1) for i, k in zip(image[2:], weight[2:])) < 1:
                continue
            yield image, weight, [stride] * n, [padding] * n, [dilation] * n, False, [0] * n, 1
        transposed = (image[1], weight[0], *weight[2:])
        yield image, transposed, [2] * n, [0] * n, [1] * n, True, [1] * n, 1
    yield (2, 4, 6), (6, 2, 3), [1], [1], [1], False, [0], 2
    yield (2, 4, 6, 5), (8, 1, 3, 3), [2, 1], [1, 1], [1, 1], False, [0, 0], 4
    yield (2, 4, 5), (4, 3, 2), [2], [0], [1], True, [1], 2


class BackwardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.checker = Checker(Lathe())

    def expect_eager(self, op, *args, **bounds):
        sample = Sample(op, types.SimpleNamespace(input=args[0], args=args[1:], kwargs={}))
        verdict, words = self.checker.check_sample(sample, bounds)
        self.assertEqual(verdict, "agrees", f"{op}{sample}: {words}")

    def test_convolution(self):
        for image, weight, *rest in convolutions():
            x, w = randn(image), randn(weight)
            y = aten.convolution(x, w, None, *rest)
            bias, mask = [y.shape[1]], [True, True, True]
            self.expect_eager(aten.convolution_backward, randn(y.shape), x, w, bias, *rest, mask,
                              atol=1e-4, rtol=1e-4)

    def test_average_pool(self):
        flags = itertools.product((False, True), (False, True), (None, 3))
        for ceil_mode, counts_padding, divisor in flags:
            for shape, kernel, stride, padding in (((2, 3, 7, 6), [3, 2], [2, 2], [1, 0]),
                                                   ((3, 5, 5), [2, 2], [], [0, 0])):
                args = kernel, stride, padding, ceil_mode, counts_padding, divisor
                x = randn(shape)
                y = aten.avg_pool2d(x, *args)
                self.expect_eager(aten.avg_pool2d_backward, randn(y.shape), x, *args)

    def test_adaptive_average_pool(self):
        for shape, size in (((2, 3, 7, 5), (3, 2)), ((3, 4, 4), (1, 1)), ((1, 2, 3, 3), (5, 4))):
            y = randn(*shape[:-2], *size)
            self.expect_eager(aten._adaptive_avg_pool2d_backward, y, randn(shape))

    def test_embedding(self):
        places = torch.tensor([[1, 4, 1], [0, 2, 4]])
        for padding, by_frequency in itertools.product((-1, 4), (False, True)):
            self.expect_eager(aten.embedding_dense_backward, randn(2, 3, 5), places, 6, padding,
                              by_frequency)

    def test_norms(self):
        x, g, w, b = randn(4, 3, 6), randn(4, 3, 6), randn(6), randn(6)
        _, mean, rstd = torch.native_layer_norm(x, [6], w, b, 1e-5)
        mask = [True, True, True]
        self.expect_eager(aten.native_layer_norm_backward, g, x, [6], mean, rstd, w, b, mask)
        x, g, w = randn(2, 6, 5), randn(2, 6, 5), randn(6)
        _, mean, rstd = torch.native_group_norm(x, w, w, 2, 6, 5, 3, 1e-5)
        self.expect_eager(aten.native_group_norm_backward, g, x, mean, rstd, w, 2, 6, 5, 3, mask)


if __name__ == "__main__":
    sys.exit(unittest.main())
