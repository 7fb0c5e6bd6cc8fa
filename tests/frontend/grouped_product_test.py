"""Products of runs of rows, each with a matrix of its own, whose ends are data."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, "frontend/python")

try:
    import torch

    import lathe
except ImportError as error:
    raise unittest.SkipTest(f"needs torch: {error}") from None


class Grouped(torch.nn.Module):
    def forward(self, a, b, ends):
        return torch._grouped_mm(a, b, ends)


class Batch(torch.nn.Module):
    def forward(self, a, b):
        return torch._grouped_mm(a, b)


def draw(*shape):
    return torch.randn(shape).to(torch.bfloat16)


class GroupedProductTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "m.pt2")

    def load(self, module, args, **options):
        lathe.export(module, args, path=self.path, **options)
        return lathe.load(self.path)

    def expect_same(self, a, b, *ends):
        run = self.load(Grouped(), (a, b, ends[0]))
        for each in ends:
            torch.testing.assert_close(run(a, b, each), torch._grouped_mm(a, b, each), rtol=2e-2,
                                       atol=5e-2)

    def ends(self, *numbers):
        return torch.tensor(numbers, dtype=torch.int32)

    def test_runs_of_rows(self):
        for rows, ends in ((300, [(17, 17, 130, 300), (0, 0, 0, 300), (300,) * 4]), (1, [(0, 1)]),
                           (13, [(0, 1, 2, 3, 5, 5, 5, 8, 13), (0,) * 8 + (13,)]),
                           (31, [(31,)]), (0, [(0, 0)])):
            self.expect_same(draw(rows, 24), draw(len(ends[0]), 24, 40),
                             *(self.ends(*each) for each in ends))

    def test_matrices_that_lie_transposed(self):
        self.expect_same(draw(64, 16), draw(3, 24, 16).mT, self.ends(5, 40, 64))

    def test_runs_of_columns(self):
        self.expect_same(draw(3, 16, 24), draw(24, 64), self.ends(8, 8, 64))

    def test_runs_of_sums(self):
        self.expect_same(draw(16, 64), draw(64, 24), self.ends(8, 8, 64), self.ends(0, 3, 64))

    def test_without_ends_it_is_a_batch(self):
        a, b = draw(3, 4, 8), draw(3, 8, 16)
        torch.testing.assert_close(self.load(Batch(), (a, b))(a, b), a @ b, rtol=2e-2, atol=5e-2)

    def test_any_number_of_rows(self):
        rows = torch.export.Dim("rows", min=2, max=4096)
        a, b, ends = draw(64, 16), draw(3, 16, 24), self.ends(5, 40, 64)
        run = self.load(Grouped(), (a, b, ends), dynamic_shapes=({0: rows}, None, None))
        for count in (2, 64, 1000):
            a, ends = draw(count, 16), self.ends(1, count // 2, count)
            torch.testing.assert_close(run(a, b, ends), torch._grouped_mm(a, b, ends), rtol=2e-2,
                                       atol=5e-2)

    def test_ends_that_are_none_read_nothing_elsewhere(self):
        a, b = draw(20, 8), draw(3, 8, 8)
        run = self.load(Grouped(), (a, b, self.ends(1, 2, 3)))
        for ends in ((9, 2, 30), (-5, 100, -3), (2**31 - 1,) * 3, (-2**31,) * 3):
            self.assertEqual(run(a, b, self.ends(*ends)).shape, (20, 8))
        self.assertEqual(run(a, b, self.ends(0, 0, 7))[7:].count_nonzero(), 0)


if __name__ == "__main__":
    unittest.main()
