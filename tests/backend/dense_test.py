"""Tensors in memory format channels_last and other dense orders go in and come out as they lie."""

import pathlib
import sys
import unittest
from unittest import mock

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402
from lathe.backend import outputs  # noqa: E402
from lathe.backend.dense_tensors import in_rows, order_of  # noqa: E402


class Filtered(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = torch.nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.filter(x).relu(), x


class DenseTest(BackendTest):
    def lies_in_rows(self, module, *inputs, **options):
        """The results, of which each is a view of what lies in rows."""
        compiled = self.compile(module, **options)
        expected, found = module(*inputs), compiled(*inputs)
        self.expect(found, expected)
        for mine, theirs in zip(found, expected):
            self.assertEqual(mine.stride(), theirs.stride())
        return found

    def as_it_lies(self, value, shape, strides):
        self.assertEqual(value.stride(), strides)
        return value

    def test_order(self):
        image = torch.empty(2, 3, 4, 5)
        self.assertIsNone(order_of(image))
        self.assertIsNone(order_of(image[..., ::2]))
        self.assertIsNone(order_of(torch.empty(2, 3).t().to(torch.complex64)))
        self.assertEqual(order_of(image.to(memory_format=torch.channels_last)), (0, 2, 3, 1))
        self.assertEqual(order_of(torch.empty(2, 3, 4, 5, 6).to(
            memory_format=torch.channels_last_3d)), (0, 2, 3, 4, 1))

    def test_images_come_out_without_a_copy(self):
        module = Filtered().to(memory_format=torch.channels_last)
        for batch, options in ((2, {"dynamic": False}), (3, {"dynamic": True})):
            image = torch.randn(batch, 3, 9, 7).to(memory_format=torch.channels_last)
            lies = mock.patch.object(outputs, "with_strides", side_effect=self.as_it_lies)
            with lies as laid_out:
                found = self.lies_in_rows(module, image, **options)
            self.assertTrue(laid_out.called)
            self.assertTrue(found[0].permute(0, 2, 3, 1).is_contiguous())
            torch._dynamo.reset()

    def test_other_orders_and_gaps(self):
        def mixed(x, y, z):
            return x * 2, y + x.sum(), z.exp(), y

        wide = torch.randn(4, 6, 5)
        for inputs in ((wide.permute(2, 0, 1), wide.mT, wide[:, ::2]),
                       (wide.permute(2, 1, 0), wide[:, :, :2].mT, wide.expand(2, 4, 6, 5).mT),
                       (wide[1:].mT, wide.permute(1, 0, 2), torch.randn(()))):
            self.lies_in_rows(mixed, *inputs, dynamic=False)
            torch._dynamo.reset()

    def test_pieces_between_calls_in_eager(self):
        def cut(x):
            return torch.fft.fft(torch.sin(x)).real.mT * 2, x + 1

        image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
        self.lies_in_rows(cut, image, dynamic=False)

    def test_a_graph_takes_and_gives_rows(self):
        graph = torch.fx.Graph()
        x, w = (graph.placeholder(name) for name in "xw")
        x.meta["val"] = torch.randn(1, 3, 5, 5)
        w.meta["val"] = filters = torch.randn(8, 3, 3, 3).to(memory_format=torch.channels_last)
        result = graph.call_function(torch.ops.aten.conv2d.default, (x, w))
        result.meta["val"] = torch.empty(1, 8, 3, 3)
        graph.output((result, w))
        module = torch.fx.GraphModule({}, graph)
        order = order_of(filters)
        rows = in_rows(module, {"w": order}, [order, None])
        image, given = x.meta["val"], filters.permute(order)
        self.assertTrue(given.is_contiguous())
        expected = module(image, filters)
        self.expect(rows(image, given), (expected[0].permute(order), expected[1]))
        self.assertIs(in_rows(module, {}, [None, None]), module)


if __name__ == "__main__":
    unittest.main()
