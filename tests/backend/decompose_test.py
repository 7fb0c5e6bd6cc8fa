"""Calls that Lathe has no op for run as PyTorch decomposes them; what cannot be stays in eager."""

import pathlib
import sys
import unittest

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, lathe  # noqa: E402

aten = torch.ops.aten


def randn(*shape):
    return torch.randn(*shape)


class DecomposeTest(BackendTest):
    def expect_decomposed(self, function, *calls, **options):
        self.expect_eager(function, *calls, **options)
        report = self.report()
        self.assertTrue(report.decomposed, str(report))
        return report

    def test_ops_of_images(self):
        image = randn(1, 4, 6, 5)
        for function in (
            lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
            lambda x: F.interpolate(x, size=(7, 3), mode="bicubic"),
            lambda x: F.interpolate(x, scale_factor=2),
            lambda x: F.pixel_shuffle(x, 2),
            lambda x: F.channel_shuffle(x, 2),
            lambda x: F.unfold(x, 3),
            lambda x: F.pad(x, (1, 2, 1, 1), mode="reflect"),
            lambda x: F.grid_sample(x, torch.full((1, 2, 2, 2), 0.3), align_corners=True),
            lambda x: F.batch_norm(x, None, None, training=True),
            lambda x: F.instance_norm(x),
        ):
            torch._dynamo.reset()
            self.expect_eager(function, (image,))

    def test_attention_with_fewer_heads_of_keys(self):
        q = randn(2, 4, 5, 8)
        for heads, options in ((1, {}), (1, {"is_causal": True}), (2, {"enable_gqa": True})):
            torch._dynamo.reset()
            k = randn(2, heads, 5, 8)
            self.expect_eager(
                lambda q, k: F.scaled_dot_product_attention(q, k, k, **options), (q, k)
            )

    def test_norms_of_weights(self):
        layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(4, 6, 3))
        self.expect_eager(layer, (randn(2, 4, 9),))

    def test_sizes_that_vary(self):
        calls = [(randn(n, 3, 4), randn(n, 3, 4)) for n in (5, 2, 7, 64)]
        self.expect_decomposed(lambda g, x: aten.mish_backward(g, x) * 2, *calls, dynamic=True)
        self.assertEqual(len(lathe.backend.reports()), 1)

    def test_calls_that_are_alike_are_traced_once_and_each_reads_its_own(self):
        def f(x, y):
            return [aten.mish_backward(t, x) + t for t in (x, y, x + y)]

        report = self.expect_decomposed(f, (randn(3, 4), randn(3, 4)))
        self.assertEqual(sum(report.decomposed.values()), 3)

    def test_one_tensor_given_twice_is_no_two_tensors(self):
        def f(x, y):
            pairs = (x, x), (x, y), (y, y)
            return [aten.mish_backward(*pair) for pair in pairs]

        self.expect_decomposed(f, (randn(3, 4), randn(3, 4)))

    def test_what_comes_out_has_memory_of_its_own(self):
        def f(x):
            y = aten.nan_to_num.default(x)
            return y, y[1]

        compiled = self.compile(f)
        x = randn(3, 4)
        y, row = compiled(x)
        y.add_(1)
        self.expect(row, y[1])
        self.assertFalse(torch.equal(x, y))

    def test_some_of_several_results(self):
        x = randn(3, 4)
        for function in (
            lambda x: torch.var_mean(x, 1)[1],
            lambda x: torch.var_mean(x, 1),
            lambda x: torch.std_mean(x, 0, keepdim=True)[0],
        ):
            torch._dynamo.reset()
            self.expect_eager(function, (x,))

    def test_what_draws_numbers_stays_in_eager(self):
        def f(x):
            return x * 2 + torch.bernoulli(torch.full_like(x, 0.5))

        torch.manual_seed(3)
        expected = f(torch.ones(64))
        torch.manual_seed(3)
        self.expect(self.compile(f)(torch.ones(64)), expected)
        self.assertEqual([f.op for f in self.report().fallbacks], ["aten.bernoulli.default"])

    def test_attention_that_drops_stays_in_eager(self):
        q, k = randn(2, 4, 5, 8), randn(2, 1, 5, 8)
        self.compile(lambda q, k: F.scaled_dot_product_attention(q, k, k, dropout_p=0.5))(q, k)
        self.assertEqual(self.report().decomposed, {})

    def test_nothing_stands_for_a_number_among_results(self):
        node = torch.fx.Graph().placeholder("x")
        node.meta["val"] = randn(2)
        self.assertTrue(lathe.backend.decompose.alike(node, randn(2)))
        self.assertFalse(lathe.backend.decompose.alike(node, 2))

    def test_sizes_that_are_arguments_of_what_comes_out(self):
        calls = [(randn(n, n), randn(n, n)) for n in (5, 2, 7)]
        self.expect_decomposed(
            lambda x, y: aten.slice_scatter(x * 2, y, 1, 0, 2**63 - 1), *calls, dynamic=True)

    def test_what_has_no_decomposition_that_lathe_runs_stays_in_eager(self):
        def f(x):
            return torch.linalg.eigvals(x @ x.t()).abs() + 1

        self.expect_eager(f, (randn(3, 4),), in_eager=1)
        self.assertEqual(self.report().decomposed, {})

    def test_the_same_bytes_as_another_dtype(self):
        x = randn(3, 4)
        self.expect_eager(lambda x: (x + 1).view(torch.int32), (x,), in_eager=None)
        self.expect_eager(lambda x: torch.fft.fft(x).real, (x,), in_eager=None)

    def test_a_report_says_so(self):
        self.expect_decomposed(lambda x: aten.mish_backward(x, x), (randn(3, 3),))
        self.assertIn("aten.mish_backward.default, 1x as PyTorch decomposes it", str(self.report()))

    def test_upsampling_stays_whole(self):
        def function(x):
            return F.interpolate(x, size=(10, 13), mode="bilinear")

        self.expect_eager(function, (torch.randn(2, 3, 5, 7),), dynamic=False)
        labels = [row["label"] for row in self.report().kernels]
        self.assertEqual(["upsample_bilinear2d"], labels)


if __name__ == "__main__":
    unittest.main()
