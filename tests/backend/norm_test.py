"""Norms by the statistics of what they are given, whose channels may be groups by themselves."""

import pathlib
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402

OPTIONS = {"fail_on_fallback": True}


class NormTest(BackendTest):
    def expect_same(self, make, *shapes, **options):
        """The module's results, and what it keeps, of tensors of each shape by turns."""
        torch.manual_seed(0)
        mine, theirs = make(), make()
        for parameter in theirs.parameters():
            nn.init.normal_(parameter)
        mine.load_state_dict(theirs.state_dict())
        compiled = self.compile(mine, options=OPTIONS, **options)
        for shape in shapes:
            x = torch.randn(shape) + 3
            with torch.no_grad():
                torch.testing.assert_close(compiled(x), theirs(x), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(mine.state_dict(), theirs.state_dict(), rtol=1e-4, atol=1e-4)

    def test_instance_norms(self):
        for affine in (False, True):
            for shape in ((1, 5, 7), (3, 4, 6, 5), (2, 1, 3, 3, 2)):
                torch._dynamo.reset()
                kind = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)[len(shape) - 3]
                self.expect_same(lambda: kind(shape[1], affine=affine), shape)  # noqa: B023

    def test_instance_norms_of_any_batch(self):
        self.expect_same(lambda: nn.InstanceNorm2d(4, affine=True), (2, 4, 6, 5), (3, 4, 6, 5),
                         (7, 4, 6, 5), dynamic=True)

    def test_batch_norms_that_learn_of_one_image(self):
        for shape in ((1, 5, 7), (1, 3, 4, 6), (2, 3, 4, 6)):
            torch._dynamo.reset()
            kind = (nn.BatchNorm1d, nn.BatchNorm2d)[len(shape) - 3]
            self.expect_same(lambda: kind(shape[1]).train(), shape)  # noqa: B023

    def test_group_norms_without_pixels(self):
        for groups, shape in ((3, (7, 12)), (6, (1, 12)), (1, (5, 131)), (2, (0, 4))):
            torch._dynamo.reset()
            self.expect_same(lambda: nn.GroupNorm(groups, shape[1]), shape)  # noqa: B023


if __name__ == "__main__":
    unittest.main()
