"""What PyTorch's own transformer modules call in inference is computed in Lathe."""

import pathlib
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402

BATCH, LENGTH, WIDTH, HEADS = 3, 5, 32, 4
attention = torch.ops.aten._native_multi_head_attention


def layer(**options):
    return nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True, **options).eval()


def projections():
    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    return (module.in_proj_weight, module.in_proj_bias, module.out_proj.weight,
            module.out_proj.bias)


class TransformerTest(BackendTest):
    def setUp(self):
        super().setUp()
        self.x = torch.randn(BATCH, LENGTH, WIDTH)
        self.later = torch.ones(LENGTH, LENGTH).triu(1).bool()
        self.padding = torch.arange(LENGTH) >= torch.tensor([[3], [5], [0]])

    def test_a_layer_of_either_order_and_activation(self):
        for norm_first in (False, True):
            for activation in ("relu", "gelu"):
                module = layer(norm_first=norm_first, activation=activation)
                for shape in ((2, 7, WIDTH), (1, 1, WIDTH), (3, 13, WIDTH)):
                    torch._dynamo.reset()
                    self.expect_eager(module, (torch.randn(shape),))

    def test_masks_of_each_type(self):
        module, seen = layer(), self.padding[:2].repeat(2, 1)[:BATCH]
        for masks in ({"src_mask": self.later}, {"src_key_padding_mask": seen},
                      {"src_mask": self.later, "src_key_padding_mask": seen}):
            function = lambda x, masks=masks: module(x, **masks)  # noqa: E731
            self.expect_eager(function, (self.x,))

    def test_queries_that_see_no_key_are_nan(self):
        module = layer()
        function = lambda x: module(x, src_key_padding_mask=self.padding)  # noqa: E731
        wanted = function(self.x)
        self.assertTrue(wanted[2].isnan().all() and wanted[:2].isfinite().all())
        found = self.compile(function, options={"fail_on_fallback": True})(self.x)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)

    def test_attention_and_its_weights(self):
        p = projections()
        for averaged in (True, False):
            self.expect_eager(
                lambda x, averaged=averaged: attention(
                    x, x, x, WIDTH, HEADS, *p, self.later, True, averaged, 0), (self.x,))
        y, z = torch.randn(2, BATCH, LENGTH, WIDTH)
        self.expect_eager(lambda x, y: attention(x, y, y, WIDTH, HEADS, *p)[0], (self.x, y))
        self.expect_eager(lambda x, y, z: attention(x, y, z, WIDTH, HEADS, *p)[0],
                          (self.x, y, z))

    def test_sizes_vary(self):
        encoder = nn.TransformerEncoder(layer(), 2, enable_nested_tensor=False).eval()
        compiled = self.compile(encoder, dynamic=True)
        for batch, length in ((2, 7), (3, 2), (5, 64)):
            x = torch.randn(batch, length, WIDTH)
            self.expect(compiled(x), encoder(x))
            self.assertEqual(self.report().fallbacks, [])


if __name__ == "__main__":
    unittest.main()
