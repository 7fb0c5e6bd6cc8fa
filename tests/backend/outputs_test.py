"""Outputs that share memory, inputs that the graph changes."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, copy  # noqa: E402


class OutputsTest(BackendTest):
    def same_aliasing(self, function, *args, **options):
        """Writing to an output shows in the others as it does in eager."""
        compiled = self.compile(function, **options)
        for i in range(len(function(*map(copy, args)))):
            mine, theirs = compiled(*map(copy, args)), function(*map(copy, args))
            self.expect(mine, theirs)
            mine[i].add_(1)
            theirs[i].add_(1)
            self.expect(mine, theirs)

    def test_views_of_one_result(self):
        def f(x):
            y = x * 2
            return y, y.t(), y[0], y[:, 1:3]

        self.same_aliasing(f, torch.randn(4, 5))

    def test_views_without_their_base(self):
        def f(x):
            y = x * 2
            return y[1:], y[:3]

        self.same_aliasing(f, torch.randn(4, 5))

    def test_views_of_sizes_that_vary(self):
        def f(x):
            y = x * 2
            return y, y.t(), y[2:]

        for n in (4, 7, 9):
            self.same_aliasing(f, torch.randn(n, 5), dynamic=True)

    def test_views_of_inputs(self):
        def f(x):
            return x.t(), x[1:], x + 1

        self.same_aliasing(f, torch.randn(4, 5))

    def test_one_tensor_twice(self):
        def f(x):
            y = x * 2
            return y, y

        self.same_aliasing(f, torch.randn(3))

    def test_an_expanded_result(self):
        self.expect_eager(lambda x: (x * 2).expand(3, 4), (torch.randn(4),))

    def test_channels_last(self):
        conv = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last).eval()
        x = torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
        self.expect_eager(lambda x: conv(x), (x,))
        self.expect_eager(lambda x: x.relu() + 1, (x,))


class MutationTest(BackendTest):
    def test_an_input_that_is_changed(self):
        def f(x, y):
            x.add_(y)
            return x * 2

        self.expect_eager(f, (torch.randn(3, 4), torch.randn(3, 4)))

    def test_a_strided_input_that_is_changed(self):
        def f(x):
            x.mul_(2)
            return x.sum()

        self.expect_eager(f, (torch.randn(4, 3).t(),))
        self.expect_eager(f, (torch.randn(4, 6)[:, ::2],))

    def test_a_part_of_an_input_that_is_changed(self):
        def f(cache, x, i):
            cache[:, i : i + 1] = x
            return cache.sum()

        # A slice that begins at an argument is none that Lathe has.
        calls = [(torch.zeros(2, 6), torch.randn(2, 1), i) for i in (0, 1, 2, 3, 5)]
        self.expect_eager(f, *calls, in_eager=1)

    def test_a_buffer_that_is_changed(self):
        class Counter(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls.add_(1)
                return x + self.calls

        mine, theirs = Counter(), Counter()
        compiled = self.compile(mine)
        for _ in range(3):
            self.expect(compiled(torch.ones(2)), theirs(torch.ones(2)))
        self.assertEqual(mine.calls.item(), 3)

    def test_overlapping_inputs_run_in_eager(self):
        def f(x, y):
            x.add_(1)
            return x + y

        compiled = self.compile(f)
        apart = torch.zeros(4), torch.zeros(4)
        self.expect(compiled(*apart), f(torch.zeros(4), torch.zeros(4)))
        for first, second in ((0, 1), (1, 0), (0, 0)):
            mine, theirs = torch.arange(5.0), torch.arange(5.0)
            found = compiled(mine[first : first + 4], mine[second : second + 4])
            self.expect(found, f(theirs[first : first + 4], theirs[second : second + 4]))
            self.expect(mine, theirs)

    def test_inputs_that_overlap_from_the_first_call_on(self):
        def f(x, y):
            x.add_(1)
            return x + y

        compiled = self.compile(f)
        for _ in range(2):
            mine, theirs = torch.arange(5.0), torch.arange(5.0)
            self.expect(compiled(mine[:4], mine[1:]), f(theirs[:4], theirs[1:]))
            self.expect(mine, theirs)
        self.expect(compiled(torch.ones(4), torch.ones(4)), torch.full((4,), 3.0))

    def test_a_view_of_an_argument_of_sizes_that_vary(self):
        def f(x, y):
            wide = x[:, None].expand_as(y)
            torch._dynamo.graph_break()
            return torch.where(wide > 0, y, wide), x[1:, ::2]

        calls = [(torch.randn(2, n, n), torch.randn(2, 3, n, n)) for n in (4, 5)]
        self.expect_eager(f, *calls, dynamic=True)


if __name__ == "__main__":
    unittest.main()
