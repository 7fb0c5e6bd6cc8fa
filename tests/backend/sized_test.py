"""Sizes that elements decide: in graphs of torch.compile and in archives, with no call in eager."""

import pathlib
import sys
import tempfile
import unittest

import torch
import torch._dynamo
from torch.utils import _pytree as pytree

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, lathe  # noqa: E402


class Experts(torch.nn.Module):
    """As mixtures of experts are written: each takes the rows that chose it."""

    def __init__(self, width=16, count=4, chosen=2):
        super().__init__()
        self.count, self.chosen = count, chosen
        self.gate = torch.nn.Linear(width, count, bias=False)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count))

    def forward(self, x):
        shape, x = x.shape, x.reshape(-1, x.shape[-1])
        weight, chosen = torch.topk(self.gate(x).softmax(1), self.chosen)
        mask = (chosen.unsqueeze(-1) == torch.arange(self.count)).permute(2, 1, 0)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            place, row = torch.where(mask[i])
            out.index_add_(0, row, expert(x[row]) * weight[row, place, None])
        return out.reshape(shape)


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def mask(x):
    return x[x > 0] * 2, torch.masked_select(x, x < 0)


def places(x):
    return torch.nonzero(x > 0), torch.where(x > 0)[0].float()


def unique(x):
    return torch.unique(x.round(), return_inverse=True, return_counts=True)


def write(x):
    y = x.clone()
    y[x > 0] = x[x > 0] * 3
    y[x < -1] = 0
    return y


def count(x):
    n = (x > 0).sum().item()
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return torch.arange(n), x[:n] + 1, torch.ones(n, 3).sum(0), n


class Head(torch.nn.Module):
    def forward(self, x, n):
        size = n.item()
        torch._check(size >= 0)
        torch._check(size <= x.shape[0])
        return x[:size]


class SizedTest(BackendTest):
    def setUp(self):
        super().setUp()
        self.enterContext(torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True,
                                                     capture_scalar_outputs=True))

    def expect_same(self, wanted, found):
        wanted, found = pytree.tree_leaves(wanted), pytree.tree_leaves(found)
        self.assertEqual(len(wanted), len(found))
        for want, got in zip(wanted, found):
            torch.testing.assert_close(got, want)

    def test_no_call_is_left_to_eager(self):
        for function in (mask, places, unique, write, count):
            with self.subTest(function.__name__), torch.no_grad():
                torch._dynamo.reset()
                lathe.backend.clear_reports()
                compiled = torch.compile(function, backend=lathe.backend.backend, fullgraph=True,
                                         dynamic=True)
                for n in (8, 9, 17, 8, 2):
                    for x in (torch.randn(n), torch.zeros(n), torch.ones(n)):
                        self.expect_same(function(x), compiled(x))
                self.assertTrue(lathe.backend.reports())
                for report in lathe.backend.reports():
                    self.assertEqual([], report.fallbacks)

    def test_archives_give_results_of_any_size(self):
        with tempfile.TemporaryDirectory() as folder:
            for function in (mask, places, unique, write, count, Experts()):
                module = function if isinstance(function, torch.nn.Module) else Call(function)
                shape = (3, 6, 16) if isinstance(function, Experts) else (9,)
                path = pathlib.Path(folder) / "model.pt2"
                torch.export.save(torch.export.export(module, (torch.randn(shape),)), path)
                model = lathe.load(path)
                # Of equal gates any may be chosen.
                few = torch.full(shape, -1.0) if shape == (9,) else torch.rand(shape)
                for x in (torch.randn(shape), few, torch.randn(shape)):
                    with self.subTest(str(function)), torch.no_grad():
                        self.expect_same(module(x), model(x))
                        arrays = [leaf if isinstance(leaf, int) else torch.as_tensor(leaf)
                                  for leaf in pytree.tree_leaves(model(x.numpy()))]
                        self.expect_same(module(x), arrays)

    def test_a_size_that_the_model_forbids_names_the_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.pt2"
            args = torch.randn(6), torch.tensor(3)
            torch.export.save(torch.export.export(Head(), args), path)
            model = lathe.load(path)
        for size in (7, -1):
            with self.assertRaisesRegex(lathe.LatheError, r"sized_test.py:\d+.*\n? *size = n.item"):
                model(torch.randn(6), torch.tensor(size))
        self.assertEqual(4, len(model(torch.randn(6), torch.tensor(4))))

    def test_counts_that_are_negative_are_refused(self):
        def bincount(x):
            return torch.bincount(x)

        def repeated(x, counts):
            return torch.repeat_interleave(x, counts)

        calls = ((bincount, (torch.tensor([1, 2]),), (torch.tensor([1, -2]),)),
                 (repeated, (torch.ones(2), torch.tensor([1, 2])),
                  (torch.ones(2), torch.tensor([3, -1]))))
        for function, args, negative in calls:
            with self.subTest(function.__name__), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.pt2"
                torch.export.save(torch.export.export(Call(function), args), path)
                model = lathe.load(path)
                self.expect_same(function(*args), model(*args))
                with self.assertRaises(RuntimeError):
                    function(*negative)
                with self.assertRaisesRegex(lathe.LatheError, "below 0"):
                    model(*negative)


if __name__ == "__main__":
    unittest.main()
