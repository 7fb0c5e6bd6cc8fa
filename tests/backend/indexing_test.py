"""Elements written and read where indices, masks and strides say."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402


class IndexingTest(BackendTest):
    def expect_written(self, place, *values, shape=(5, 4, 3)):
        """x[place] = value and x[place] += value, for each value."""
        for value in values:
            for accumulate in (False, True):
                torch._dynamo.reset()

                def f(x, accumulate=accumulate, value=value):
                    return torch.ops.aten.index_put(x * 2, place, value, accumulate)

                with self.subTest(place=place, value=value.shape, accumulate=accumulate):
                    self.expect_eager(f, (torch.randn(shape),))

    def test_positions_behind_dims_that_are_written_whole(self):
        at = torch.tensor([2, 0])
        self.expect_written([None, at], torch.tensor(1.0), torch.randn(3), torch.randn(2, 3),
                            torch.randn(5, 2, 3), torch.randn(5, 1, 1))
        self.expect_written([None, None, at], torch.tensor(1.0), torch.randn(2),
                            torch.randn(4, 2), torch.randn(5, 1, 2))
        grid = torch.tensor([[0, 1], [2, 3]])
        self.expect_written([None, grid], torch.randn(2, 2, 3), torch.randn(5, 2, 2, 3))

    def test_positions_with_a_gap_between(self):
        at, to = torch.tensor([0, 3, 1]), torch.tensor([2, 0, 1])
        self.expect_written([at, None, to], torch.tensor(1.0), torch.randn(4), torch.randn(3, 4))
        self.expect_written([None, at, to], torch.randn(3), torch.randn(5, 3))

    def test_masks(self):
        rows = torch.tensor([True, False, True, True, False])
        self.expect_written([rows], torch.tensor(1.0), torch.randn(3), torch.randn(4, 3),
                            torch.randn(1, 4, 3), torch.randn(3, 4, 3), torch.randn(3, 1, 1))
        table = torch.arange(20).reshape(5, 4) % 3 == 0
        self.expect_written([table], torch.tensor(1.0), torch.randn(3), torch.randn(1, 3),
                            torch.randn(7, 3))
        self.expect_written([None, table[0]], torch.tensor(1.0), torch.randn(3),
                            torch.randn(5, 1, 3))
        whole = torch.arange(60).reshape(5, 4, 3) % 7 == 0
        self.expect_written([whole], torch.tensor(1.0), torch.randn(9))
        self.expect_written([~(rows | True)], torch.randn(0, 4, 3), torch.tensor(2.0))

    def test_assignment_as_it_is_written(self):
        def f(x, mask, at):
            x[mask] = 0
            x[:, at] += 1
            x[..., -1] = 5
            return x * 2

        self.expect_eager(
            f, (torch.randn(5, 4), torch.rand(5, 4) > 0.5, torch.tensor([0, 2])), in_eager=0)

    def test_strides_of_a_tensor(self):
        def read(*call):
            torch._dynamo.reset()
            return lambda x: torch.as_strided(x * 1, *call) + 1

        x = torch.randn(4, 6)
        for call in (((3, 4), (6, 1)), ((5, 4), (4, 2), 1), ((2, 3, 2), (0, 5, 1), 3), ((), (), 7),
                     ((23,), (1,), 1), ((0, 2), (1, 1))):
            with self.subTest(call):
                self.expect_eager(read(*call), (x,), in_eager=0)
                self.expect_eager(read(*call), (x.t(),), in_eager=0)

    def test_strides_of_a_view_that_reach_around_it(self):
        def f(x):
            y = x * 2
            parts = torch.split(y, 2)
            return (torch.as_strided(y[1:], (2, 2), (3, 1), 0) + 1, parts[0][1] * 3,
                    torch.as_strided(parts[0], (5, 2), (2, 1)) + 1,
                    torch.as_strided(parts[1].t()[1], (2,), (3,), 5) + 1)

        self.expect_eager(f, (torch.randn(4, 3),), in_eager=0)

    def test_strides_of_an_input_that_is_a_view(self):
        def f(x):
            return torch.as_strided(x[1:], (2, 2), (3, 1), 0) + torch.as_strided(x, (2,), (1,), 4)

        compiled = self.compile(f)
        whole = torch.randn(9, 3)
        for start in (0, 2, 5):
            self.expect(compiled(whole[start : start + 4]), f(whole[start : start + 4]))

    def test_what_strides_overlap_is_written_once(self):
        def f(x, y):
            return torch.as_strided_scatter(x, y, (2, 3), (4, 1), 1) * 2

        self.expect_eager(f, (torch.randn(3, 4), torch.randn(2, 3)), in_eager=0)

    def test_bits(self):
        def f(x):
            return (x.view(torch.int32) ^ (1 << 31)).view(torch.float32)

        self.expect_eager(f, (torch.randn(7),), in_eager=0)

    def test_rows_repeated_by_a_tensor(self):
        def f(x, times):
            return torch.repeat_interleave(x, times, dim=0, output_size=6) + 1

        self.expect_eager(f, (torch.randn(4, 2), torch.tensor([2, 0, 1, 3])), in_eager=0)


if __name__ == "__main__":
    unittest.main()
