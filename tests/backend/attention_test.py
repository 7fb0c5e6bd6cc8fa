"""Attention as models write it by hand: what eager gives, also in rows that a mask hides wholly."""

import itertools
import math
import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402

LOW = torch.finfo(torch.float32).min


def filled(number):
    """Scores that the mask hides become a number."""
    return lambda scores, keep, bias: scores.masked_fill(~keep, number)


MASKS = {
    "none": lambda scores, keep, bias: scores,
    "-inf": filled(-math.inf),
    "lowest": lambda scores, keep, bias: scores.masked_fill(~keep, torch.finfo(scores.dtype).min),
    "-1e9": lambda scores, keep, bias: torch.where(keep, scores.float(), -1e9).to(scores.dtype),
    "bias": lambda scores, keep, bias: scores + bias,
    "bias, -inf": lambda scores, keep, bias: (scores + bias).masked_fill(~keep, -math.inf),
    "-inf, bias": lambda scores, keep, bias: bias + scores.masked_fill(~keep, -math.inf),
    "bias, scaled": lambda scores, keep, bias: (scores + bias) / 3,
    "lowest, scaled": lambda scores, keep, bias: filled(LOW / 8)(scores.float(), keep, bias) * 1.5,
    "lowest, scaled up": lambda scores, keep, bias: filled(LOW)(scores.float(), keep, bias) * 1.5,
    "lowest added, scaled up": lambda scores, keep, bias:
        (scores.float() + torch.where(keep, 0.0, LOW)) * 1.5,
    "all, scaled": lambda scores, keep, bias: filled(-math.inf)(scores * 2 + bias, keep, bias) / 3,
    "added": lambda scores, keep, bias: scores + (~keep).to(scores.dtype) * LOW / 2,
    "bool added": lambda scores, keep, bias: scores + keep,
    "number added": lambda scores, keep, bias: scores + bias.sum(),
    "row added": lambda scores, keep, bias: scores + bias[0, 0].log(),
    "added twice": lambda scores, keep, bias: scores + bias + torch.where(keep, 0.0, -math.inf),
}


def attend(masks, wide):
    """A function of query, key, value, what is kept and a bias, with a result for each mask.
    `wide`: what is in f32.
    """

    def attention(mask, q, k, v, keep, bias):
        if wide == "all":
            q, k = q.float(), k.float()
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = MASKS[mask](scores, keep, bias)
        if wide == "softmax":
            weights = torch.softmax(scores, -1, dtype=torch.float32).to(v.dtype)
        else:
            weights = torch.softmax(scores, -1).to(v.dtype)
        return weights @ v

    return lambda *args: {mask: attention(mask, *args) for mask in masks}


def spelled_out(q, k, v):
    scores = torch.einsum("bhtd,bhsd->bhts", q, k) * 0.3
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    return (powers / powers.sum(-1, keepdim=True)) @ v


def turned(q, k, v):
    q, k, v = (x.flatten(0, 1).transpose(1, 2) for x in (q, k, v))
    weights = torch.softmax(torch.bmm(q.transpose(1, 2), k), -1)
    return torch.bmm(v, weights.transpose(1, 2))


def of_images(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    nothing = torch.empty(1, 1, 1)
    return torch.bmm(torch.baddbmm(nothing, q, k.mT, beta=0, alpha=0.3).softmax(-1), v)


def filled_with_a_tensor(q, k, v):
    scores = q @ k.mT / 3
    least = torch.tensor(torch.finfo(scores.dtype).min)
    keep = torch.ones(5, 7, dtype=torch.bool).tril()
    return torch.softmax(torch.where(keep, scores, least), -1) @ v


class AttentionTest(BackendTest):
    def check(self, masks, wide, dtype, batch, queries=5, keys=7):
        q = torch.randn(*batch, queries, 8, dtype=dtype)
        k, v = (torch.randn(*batch, keys, 8, dtype=dtype) for _ in range(2))
        keep = torch.rand(queries, keys) < 0.6
        keep[:, 0] = True
        keep[1:2] = False  # a row of nothing
        bias = torch.randn(*batch[-1:], queries, keys, dtype=dtype)
        function = attend(masks, wide)
        found = self.compile(function, dynamic=False)(q, k, v, keep, bias)
        tolerance = {torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}[dtype]
        for mask, expected in function(q, k, v, keep, bias).items():
            with self.subTest(f"{mask}, {wide}, {dtype}, {batch}"):
                torch.testing.assert_close(found[mask], expected, rtol=tolerance, atol=tolerance,
                                           equal_nan=True)
        torch._dynamo.reset()

    def test_masks_in_f32(self):
        self.check(MASKS, None, torch.float32, (2, 3))

    def test_masks_in_halves(self):
        dtypes = (torch.bfloat16, torch.float16)
        for wide, dtype in itertools.product((None, "softmax", "all"), dtypes):
            self.check(MASKS, wide, dtype, (2, 3))

    def test_batch_dims(self):
        for batch in ((), (3,), (2, 3, 2), (1, 2, 1, 3)):
            self.check(("none", "lowest", "bias, -inf"), None, torch.float32, batch)

    def test_other_spellings(self):
        q, k, v = (torch.randn(2, 3, length, 8) for length in (5, 7, 7))
        for function in (spelled_out, turned, of_images, filled_with_a_tensor):
            with self.subTest(function.__name__):
                self.expect_eager(function, (q, k, v), dynamic=False)

    def test_few_of_all(self):
        for queries, keys in ((1, 1), (2, 1), (2, 17), (13, 2), (0, 7)):
            self.check(("lowest",), None, torch.float32, (1, 2), queries, keys)


if __name__ == "__main__":
    unittest.main()
