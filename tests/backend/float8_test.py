"""Numbers of 8 bits are cast, moved and multiplied with scales as in eager, to the bit."""

import pathlib
import sys
import tempfile
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, lathe  # noqa: E402

SIGNED = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
ALL = (*SIGNED, torch.float8_e8m0fnu)
E4M3 = torch.float8_e4m3fn
# Of a sum, whose order is each machine's own.
ROUNDING = {torch.float32: 1e-5, torch.bfloat16: 2**-7, E4M3: 2**-3}


def every_number(dtype):
    return torch.arange(256, dtype=torch.uint8).view(dtype)


def floats():
    """Of every exponent, near every number of every format and in the middle between two."""
    near = torch.cat([every_number(dtype).float() for dtype in SIGNED])
    ordered = near[near.isfinite()].unique()
    middles = (ordered[1:] + ordered[:-1]) / 2
    around = torch.cat([ordered, middles])
    sides = [around.nextafter(torch.tensor(end)) for end in (-torch.inf, torch.inf)]
    significands = torch.tensor([1.0, 1.25, 1.5, 1.75, -1.0])
    exponents = torch.ldexp(significands.expand(277, 5), torch.arange(-149, 128)[:, None])
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan])
    return torch.cat([near, around, *sides, exponents.flatten(), special])


def numbers(*shape, dtype=E4M3):
    return torch.randn(shape).to(dtype)


class Float8Test(BackendTest):
    def expect_bits(self, f, *args):
        """As eager, float8 by their bytes."""
        torch._dynamo.reset()
        lathe.backend.clear_reports()
        wanted = f(*args)
        found = self.compile(f, options={"fail_on_fallback": True})(*args)
        wanted, found = (x if isinstance(x, (tuple, list)) else [x] for x in (wanted, found))
        for w, g in zip(wanted, found, strict=True):
            self.assertEqual((w.dtype, w.shape), (g.dtype, g.shape))
            if w.dtype in ALL:
                w, g = w.view(torch.uint8), g.view(torch.uint8)
            torch.testing.assert_close(g, w, rtol=0, atol=0, equal_nan=True)

    def load(self, module, *args):
        with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
            torch.export.save(torch.export.export(module, args), file.name)
            return lathe.load(file.name)

    def test_every_number_is_cast_to_every_dtype(self):
        for dtype in ALL:
            for to in (torch.float32, torch.bfloat16, torch.float16, torch.float64, *ALL):
                with self.subTest(dtype=dtype, to=to):
                    self.expect_bits(lambda x, to=to: x.to(to), every_number(dtype))

    def test_floats_are_rounded_to_the_nearest(self):
        for to in ALL:
            for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
                with self.subTest(dtype=dtype, to=to):
                    self.expect_bits(lambda x, to=to: x.to(to), floats().to(dtype))

    def test_integers_are_cast(self):
        for to in ALL:
            x = torch.tensor([0, 1, -1, 3, 17, 100, -449, 70000])
            self.expect_bits(lambda x, to=to: (x.to(to), (x > 0).to(to)), x)
            self.expect_bits(lambda x: (x.to(torch.int32), x.bool()), every_number(to)[:64])

    def test_moves_are_those_of_bytes(self):
        a, b = numbers(4, 6), numbers(4, 6)
        rows = torch.tensor([2, 0, 3])
        for f in (
            lambda a, b: torch.cat([a, b], 1).t().contiguous(),
            lambda a, b: torch.stack([a, b])[:, 1:, ::2].clone(),
            lambda a, b: a.view(2, 12).repeat(2, 1).roll(3),
            lambda a, b: a[rows].clone(),
            lambda a, b: torch.nn.functional.embedding(rows, a),
            lambda a, b: torch.where(a.float() > 0, a, b),
            lambda a, b: torch.nn.functional.pad(a, (1, 2)),
            lambda a, b: torch.nn.functional.pad(a, (1, 2), value=1.5),
            lambda a, b: torch.slice_scatter(a, b[:2], 0, 0, 2),
            lambda a, b: a.clone().index_put_((torch.tensor([1]),), b[:1]),
            lambda a, b: (*a.unbind(1), *b.split([2, 4], 1)),
            lambda a, b: (a.view(torch.uint8) + 1).view(E4M3),
            lambda a, b: (torch.zeros_like(a), torch.ones_like(b), torch.full_like(a, -3.0)),
            lambda a, b: (a.abs(), a == b, a != b, a.isnan()),
            lambda a, b: a.clone().fill_(2.5),
            lambda a, b: a.clone().copy_(b.float() * 2),
            lambda a, b: b.float().copy_(a),
            lambda a, b: torch.full((3,), 0.3, dtype=E4M3),
        ):
            self.expect_bits(f, a, b)

    def test_arguments_are_written(self):
        def f(cache, x):
            cache[1:3] = x.to(cache.dtype)
            return cache.float().sum(0)

        for shape in ((4, 6), (4, 0), (4, 1)):
            cache = numbers(*shape)
            caches = cache, cache.clone()
            x = torch.randn(2, shape[1])
            compiled = self.compile(f, options={"fail_on_fallback": True})
            self.expect(compiled(caches[0], x), f(caches[1], x))
            self.assertTrue(torch.equal(*(c.view(torch.uint8) for c in caches)))

    def test_products_with_scales(self):
        product = torch._scaled_mm
        for m, k, n in ((16, 32, 48), (1, 16, 16), (5, 3, 7), (0, 16, 16)):
            a, b = numbers(m, k), numbers(n, k).t()
            whole = torch.tensor(2.3), torch.tensor(0.57)
            rows = torch.rand(m, 1), torch.rand(1, n)
            bias = torch.randn(n)
            for scales in (whole, rows):
                for out in (torch.float32, torch.bfloat16, E4M3):
                    f = lambda a, b, s, t, u, out=out: (  # noqa: E731
                        product(a, b, s, t, out_dtype=out), product(a, b, s, t, u, out_dtype=out))
                    wanted = f(a, b, *scales, bias)
                    torch._dynamo.reset()
                    found = self.compile(f, options={"fail_on_fallback": True})(a, b, *scales, bias)
                    for w, g in zip(wanted, found):
                        self.assertEqual((w.dtype, w.shape), (g.dtype, g.shape))
                        self.expect(g.float(), w.float(), ROUNDING[out])
        divided = lambda a, b, s, t, u: product(a, b, s, t, None, u, E4M3)  # noqa: E731
        self.expect_bits(divided, numbers(16, 32), numbers(16, 32).t(), *whole, torch.tensor(2.0))

    def test_weights_of_a_quantized_layer(self):
        class Layer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                weight = torch.randn(24, 16)
                self.register_buffer("scale", weight.abs().amax(1, True) / 448)
                self.register_buffer("weight", (weight / self.scale).to(E4M3))

            def forward(self, x):
                weight = self.weight.to(x.dtype) * self.scale.to(x.dtype)
                return torch.nn.functional.linear(x, weight)

        layer = Layer()
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(3, 16, dtype=dtype)
            wanted = layer(x)
            torch._dynamo.reset()
            self.expect(self.compile(layer, options={"fail_on_fallback": True})(x), wanted)
        x = torch.randn(3, 16)
        self.expect(self.load(layer, x)(x), layer(x))

    def test_sizes_vary(self):
        torch._dynamo.reset()
        f = lambda x: x.to(E4M3).t().to(torch.float32)  # noqa: E731
        compiled = self.compile(f, dynamic=True, options={"fail_on_fallback": True})
        for rows in (0, 1, 2, 13):
            x = torch.randn(rows, 5)
            torch.testing.assert_close(compiled(x), f(x))

    def test_other_tensors_in_their_place_are_refused(self):
        f = lambda x: x.to(torch.float32)  # noqa: E731
        compiled = self.load(Call(f), numbers(4))
        self.expect(compiled(numbers(4).fill_(2)), torch.full((4,), 2.0))
        for wrong, words in (
            (torch.ones(4, dtype=torch.uint8), "'x' is float8_e4m3fn, got uint8"),
            (numbers(4, dtype=torch.float8_e5m2), "'x' is float8_e4m3fn, got float8_e5m2"),
        ):
            with self.assertRaisesRegex(lathe.LatheError, words):
                compiled(wrong)

    def test_what_is_not_there_is_named(self):
        words = "'torch.ops.aten.amax.default' of float8 is not supported"
        with self.assertRaisesRegex(lathe.LatheError, words):
            self.load(Call(lambda x: x.amax()), numbers(4))


class Call(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


if __name__ == "__main__":
    unittest.main()
