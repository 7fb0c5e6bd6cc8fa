"""Calls in eager that read weights alone, or nothing, run once, and again when weights change."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402

runs = []


@torch.library.custom_op("settled_test::half", mutates_args=())
def half(x: torch.Tensor) -> torch.Tensor:
    """What Lathe has nothing for; it counts its runs."""
    runs.append(x)
    return x / 2


@half.register_fake
def half_shape(x):
    return torch.empty_like(x)


class Table(torch.nn.Module):
    def __init__(self, finish):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(4, 3))
        self.finish = finish

    def forward(self, x):
        return self.finish(x, self.table)


class SettledTest(BackendTest):
    def runs_of(self, finish, num_calls=3):
        """How often the op runs in so many calls, all of which give what eager gives."""
        self.module = Table(finish)
        self.compiled = self.compile(self.module, dynamic=False)
        count = 0
        for _ in range(num_calls):
            x = torch.randn(4, 3)
            expected = self.module(x)
            runs.clear()
            found = self.compiled(x)
            count += len(runs)
            self.expect(found, expected)
            for tensor in found if isinstance(found, tuple) else (found,):
                tensor.add_(1)  # a caller may
        return count

    def test_they_run_once_in_many_calls_and_cut_nothing(self):
        self.assertEqual(2, self.runs_of(lambda x, w: (x + 1) * half(half(w).t()).t()))
        self.assertEqual([s.runs_in for s in self.report().segments], ["lathe"])
        self.assertEqual([], self.report().fallbacks)
        self.assertIn("settled_test.half.default, 2x in eager once", str(self.report()))

    def test_what_they_alone_read_runs_with_them(self):
        self.assertEqual(1, self.runs_of(lambda x, w: x * half(torch.arange(3.) + w.exp())))
        self.assertEqual([], self.report().fallbacks)

    def test_what_reads_nothing_needs_no_weight(self):
        self.assertEqual(1, self.runs_of(lambda x, w: x * half(torch.arange(3.))))
        self.assertEqual([s.runs_in for s in self.report().segments], ["lathe"])

    def test_what_is_read_beside_them_stays_where_it_is(self):
        self.assertEqual(3, self.runs_of(lambda x, w: x.exp() * half(t := w.exp()) @ t.t()))

    def test_random_numbers_are_drawn_in_each_call(self):
        module = Table(lambda x, w: x * half(torch.rand(3)))
        compiled = self.compile(module, dynamic=False)
        runs.clear()
        for _ in range(2):
            compiled(torch.randn(4, 3))
        self.assertEqual(2, len(runs))

    def test_they_run_again_when_a_weight_changes(self):
        self.runs_of(lambda x, w: x * half(w))
        self.module.table.mul_(3)
        x = torch.randn(4, 3)
        self.expect(self.compiled(x), x * self.module.table / 2)

    def test_what_reads_an_input_runs_in_each_call(self):
        self.assertEqual(1 + 6, self.runs_of(lambda x, w: half(half(w) + x) + half(x)))
        self.assertEqual(1, self.report().settled["settled_test.half.default"])

    def test_what_is_returned_runs_in_each_call(self):
        self.assertEqual(3, self.runs_of(lambda x, w: (x + 1, half(w))))

    def test_what_is_shown_in_a_view_runs_in_each_call(self):
        self.assertEqual(3, self.runs_of(lambda x, w: (x + 1, half(w)[1:])))

    def test_live_weights_settle_nothing(self):
        module = Table(lambda x, w: x * half(w))
        compiled = self.compile(module, dynamic=False, options={"weights": "live"})
        runs.clear()
        for _ in range(2):
            compiled(torch.randn(4, 3))
        self.assertEqual(2, len(runs))


if __name__ == "__main__":
    unittest.main()
