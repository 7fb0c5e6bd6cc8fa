"""What only the data says to be wrong: eager raises, and so does Lathe, with the line of Python."""

import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, lathe  # noqa: E402

X = torch.arange(6.0).reshape(2, 3)
ONES = torch.ones(2, 1)


def column(v):
    return torch.tensor([[v], [0]])


def vector(v):
    return torch.tensor([v])


def pair(v):
    return torch.tensor([v, 0])


# (operator, what takes the positions, positions of a number, numbers that fit and that do not)
CASES = [
    ("embedding", lambda i: F.embedding(i, X), vector, (0, 1), (2, -1, 2**40, -(2**63))),
    ("embedding of i32", lambda i: F.embedding(i.int(), X), vector, (1,), (2, -1)),
    ("of a sum", lambda i: F.embedding(i + 1, X), vector, (0, -1), (1, -2)),
    ("index_select", lambda i: torch.index_select(X, 1, i), vector, (2,), (3, -1)),
    ("gather", lambda i: torch.gather(X, 1, i), column, (2,), (3, -1)),
    ("gather of one", lambda i: torch.gather(X[0, 0], 0, i), torch.tensor, (0,), (1, -1)),
    ("take", lambda i: torch.take(X, i), vector, (5, -6), (6, -7)),
    ("put", lambda i: torch.put(X, i, torch.ones(1)), vector, (5, -6), (6, -7)),
    ("scatter", lambda i: torch.scatter(X, 1, i, 1.0), column, (2,), (3, -1)),
    ("scatter_", lambda i: X.clone().scatter_(1, i, ONES), column, (2,), (3, -1)),
    ("scatter_add", lambda i: torch.scatter_add(X, 1, i, ONES), column, (2,), (3, -1)),
    ("scatter_reduce", lambda i: X.scatter_reduce(1, i, ONES, "amax"), column, (2,), (3, -1)),
    ("index_fill", lambda i: torch.index_fill(X, 1, i, 1.0), vector, (2, -3), (3, -4)),
    ("index", lambda i: X[:, i], vector, (2, -3), (3, -4)),
    ("index of two", lambda i: X[i, i], vector, (1, -2), (2, -3)),
    ("index_put", lambda i: torch.index_put(X, (i,), torch.ones(1, 3)), vector, (1, -2), (2, -3)),
    ("nll_loss", lambda i: F.nll_loss(X, i), pair, (2, -100), (3, -1)),
    ("cross_entropy", lambda i: F.cross_entropy(X, i), pair, (2, -100), (3, -1)),
    ("embedding_bag", lambda i: F.embedding_bag(i, X), column, (1,), (2, -1)),
    ("one_hot", lambda i: F.one_hot(i, 4), pair, (3,), (4, -1)),
]
# Those that PyTorch's graphs for torch.compile write otherwise, and have no check of negative ones.
OF_EXPORT = [
    ("index_add", lambda i: torch.index_add(X, 1, i, ONES), vector, (2,), (3, -1)),
    ("index_copy", lambda i: torch.index_copy(X, 1, i, ONES), vector, (2,), (3, -1)),
    (
        "max_unpool2d",
        lambda i: F.max_unpool2d(torch.ones(1, 1, 1, 2), i.reshape(1, 1, 1, 2), 2),
        pair,
        (7,),
        (8, -1),
    ),
]
# What masks and weights have to be.
OF_VALUES = [
    (
        "index_put of a mask",
        lambda v: torch.index_put(X, (X > v,), torch.tensor([9.0, 8.0, 7.0])),
        torch.tensor,
        (2,),
        (1, 7),
    ),
    (
        "index_put of no values",
        lambda v: torch.index_put(X, (X > v,), torch.ones(0)),
        torch.tensor,
        (7,),
        (1,),
    ),
    (
        "masked_scatter",
        lambda v: torch.masked_scatter(X, X > v, torch.tensor([9.0, 8.0, 7.0])),
        torch.tensor,
        (2, 7),
        (1,),
    ),
    (
        "multinomial",
        lambda w: torch.multinomial(w, 1) * 0,
        lambda v: torch.tensor([[v, 0.0], [1.0, 2.0]]),
        (0.5,),
        (-1.0, float("nan"), float("inf"), 0.0),
    ),
    ("bernoulli", lambda p: torch.bernoulli(p), vector, (0.0, 1.0), (-0.5, 1.5, float("nan"))),
    (
        "_assert_async",
        lambda v: (torch._assert_async(v > 0, "v is positive"), v + 1)[1],
        torch.tensor,
        (1,),
        (0,),
    ),
    (
        "_check of item",
        lambda v: (torch._check(v.item() > 0), v + 1)[1],
        torch.tensor,
        (1,),
        (0,),
    ),
]


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


class AssertedTest(BackendTest):
    def expect_as_eager(self, function, compiled, make, fit, misfit):
        for number in fit:
            self.expect(compiled(make(number)), function(make(number)))
        for number in misfit:
            with self.subTest(number=number):
                with self.assertRaises((RuntimeError, IndexError)):
                    function(make(number))
                with self.assertRaises(lathe.LatheError) as raised:
                    compiled(make(number))
                self.assertIn("error[assertion]", str(raised.exception))
        self.expect(compiled(make(fit[0])), function(make(fit[0])))  # as good as before

    def load(self, function, args, shapes=None, **options):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = pathlib.Path(folder) / "model.pt2"
        program = torch.export.export(Call(function), args, dynamic_shapes=shapes)
        torch.export.save(program, path)
        return lathe.load(path, **options)

    def test_archives_refuse_what_eager_refuses(self):
        for name, function, make, fit, misfit in CASES + OF_EXPORT + OF_VALUES:
            with self.subTest(name):
                model = self.load(function, (make(fit[0]),))
                self.expect_as_eager(function, model, make, fit, misfit)

    def test_compiled_functions_refuse_what_eager_refuses(self):
        for name, function, make, fit, misfit in CASES + OF_VALUES[:3]:
            with self.subTest(name):
                torch._dynamo.reset()
                self.expect_as_eager(function, self.compile(function), make, fit, misfit)
                self.assertEqual([], self.report().fallbacks)

    def test_the_interpreter_and_webassembly_refuse_it_too(self):
        for passes, target in (("minimal", "cpu"), ("default", "wasm"), ("minimal", "wasm")):
            for name, function, make, fit, misfit in CASES[::4] + OF_VALUES[:4]:
                with self.subTest(name, passes=passes, target=target):
                    model = self.load(function, (make(fit[0]),), passes=passes, target=target)
                    self.expect_as_eager(function, model, make, fit, misfit)

    def test_the_error_names_number_size_and_line(self):
        with tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
            for where in ("compiled", "found"):  # in the cache
                torch._dynamo.reset()
                compiled = self.compile(lambda i: F.embedding(i, X))
                with self.assertRaisesRegex(
                    lathe.LatheError,
                    r"asserted_test.py:\d+: .*'embedding': index 7 is out of bounds for dimension "
                    r"0 with size 2",
                ):
                    compiled(vector(7))
                self.assertIn(where, self.report().segments[0].cache)

    def test_symbolic_sizes_bound_positions(self):
        def function(x, i):
            return x[i]

        size = torch.export.Dim("size", min=1, max=64)
        for target in ("cpu", "wasm"):
            model = self.load(function, (torch.randn(5), pair(1)), ({0: size}, None), dynamic=True,
                              target=target)
            for n in (1, 2, 7, 64):
                x = torch.randn(n)
                self.expect(model(x, pair(n - 1)), function(x, pair(n - 1)))
                self.expect(model(x, pair(-n)), function(x, pair(-n)))
                for wrong in (n, -n - 1):
                    with self.assertRaisesRegex(lathe.LatheError, f"index {wrong} .*size {n}"):
                        model(x, pair(wrong))

    def test_nothing_is_asserted_of_no_positions(self):
        empty = torch.zeros(0, dtype=torch.int64)
        self.expect(self.compile(lambda i: F.embedding(i, X))(empty), F.embedding(empty, X))


if __name__ == "__main__":
    unittest.main()
