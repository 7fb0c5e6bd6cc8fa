"""torch.compile(backend="lathe"): what goes in and what comes out."""

import gc
import os
import pathlib
import sys
import tempfile
import threading
import unittest
import unittest.mock

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, lathe  # noqa: E402


class CallsTest(BackendTest):
    def test_a_function_gives_what_eager_gives(self):
        args = torch.randn(3, 4), torch.randn(4, 5)
        self.expect_eager(lambda x, y: torch.relu(x @ y) + 1, args)
        self.assertEqual(self.report().calls_in_lathe, 3)

    def test_strides_of_inputs_are_any(self):
        def f(x):
            return x * 2 + x.sum(1, keepdim=True)

        x = torch.randn(4, 6)
        for given in (x, x.t().contiguous().t(), x[:, ::2], x[:1].expand(4, 6), x[1:]):
            self.expect_eager(f, (given,))

    def test_sizes_that_vary_stay_symbols(self):
        layer = torch.nn.Linear(8, 8).eval()

        def f(x):
            return torch.softmax(layer(x), -1).reshape(-1)

        sizes = (5, 2, 3, 7, 64, 65)
        self.expect_eager(f, *((torch.randn(n, 8),) for n in sizes), dynamic=True)
        self.assertEqual(len(lathe.backend.reports()), 1)

    def test_a_graph_that_dynamo_begins_again_has_one_report(self):
        layer = torch.nn.Linear(8, 8).eval()  # fixes a size that was to vary
        self.expect_eager(lambda x: layer(x) * 2, (torch.randn(5, 8),), dynamic=True)
        (report,) = lathe.backend.reports()
        self.assertGreater(report.calls_in_lathe, 0)

    def test_a_kept_program_gives_the_same(self):
        layer = torch.nn.Linear(8, 8).eval()
        x = torch.randn(5, 8)
        with tempfile.TemporaryDirectory() as home:
            with unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": home}):
                for words in ("compiled: nothing is kept", "found "):
                    torch._dynamo.reset()
                    lathe.backend.clear_reports()
                    self.expect_eager(lambda x: torch.relu(layer(x)), (x,))
                    (report,) = lathe.backend.reports()
                    self.assertTrue(report.segments[0].cache.startswith(words), report.segments)
                    self.assertEqual(len(report.kernels), 1)
                    (kernel,) = report.kernels
                    self.assertEqual(kernel["kind"], "contraction")
                    self.assertEqual(kernel["ops"], "linear, relu")
                    self.assertRegex(kernel["line"], r"^backend_test.py:\d+$")
                torch._dynamo.reset()
                self.expect_eager(lambda x: torch.relu(layer(x)), (x,), options={"cache": False})
                self.assertIsNone(lathe.backend.reports()[-1].segments[0].cache)

    def test_a_report_times_the_kernels_of_its_graph(self):
        layer = torch.nn.Linear(8, 8).eval()
        compiled = self.expect_eager(lambda x: layer(x).softmax(-1), (torch.randn(5, 8),))
        report = self.report()
        self.assertEqual({kernel["ms"] for kernel in report.kernels}, {None})
        lathe.backend.set_timing(True)
        compiled(torch.randn(5, 8))
        lathe.backend.set_timing(False)
        self.assertEqual(len(report.kernels), report.segments[0].kernels)
        for kernel in report.kernels:
            self.assertGreater(kernel["ms"], 0)
            self.assertGreater(kernel["predicted_ms"], 0)
        del compiled
        torch._dynamo.reset()
        gc.collect()
        self.assertEqual(report.kernels, [], "the graph is gone")

    def test_the_second_size_makes_it_symbolic_and_0_and_1_are_numbers(self):
        def f(x):
            return (x * 2).sum(0)

        self.expect_eager(f, *((torch.randn(n, 3),) for n in (4, 5, 6, 1, 0, 9)))
        self.assertEqual(len(lathe.backend.reports()), 4)

    def test_dtypes(self):
        for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32):
            x = (torch.randn(4, 5) * 4).to(dtype)
            self.expect_eager(lambda x: (x + x, x > 1, x.abs()), (x,))

    def test_numbers_among_the_arguments(self):
        def f(x, i, f):
            return x * i + f

        calls = [(torch.randn(3), i, v) for i, v in ((2, 0.5), (3, 1.5), (4, 2.5), (5, -1.0))]
        self.expect_eager(f, *calls)
        self.expect_eager(f, *calls, dynamic=True)

    def test_constants_of_the_graph(self):
        def f(x):
            return x[torch.tensor([2, 0])] + torch.tensor(1.5)

        self.expect_eager(f, (torch.randn(3, 2),))
        self.expect_eager(f, *((torch.randn(n, 2),) for n in (3, 5, 6)), dynamic=True)

    def test_no_tensor_goes_in(self):
        weight = torch.nn.Parameter(torch.ones(3))
        self.expect_eager(lambda: weight * 2 + torch.arange(3), (), ())
        lathe.backend.clear_reports()
        self.expect_eager(lambda n: torch.zeros(n) + 1, (2,), (3,), (4,))

    def test_an_empty_tensor(self):
        self.expect_eager(lambda x: x + 1, (torch.empty(0, 3),))

    def test_what_is_nested_comes_back_nested(self):
        compiled = self.compile(lambda d: {"a": [d["x"] + 1, None, 3], "b": (d["x"].shape[0],)})
        result = compiled({"x": torch.zeros(2)})
        self.expect(result["a"][0], torch.ones(2))
        self.assertEqual((result["a"][1:], result["b"]), ([None, 3], (2,)))

    def test_a_size_that_is_returned(self):
        def f(x):
            return x + 1, x.shape[0] * 2

        self.expect_eager(f, *((torch.randn(n, 2),) for n in (3, 4, 5)), dynamic=True)

    def test_autocast_is_in_the_graph(self):
        layer = torch.nn.Linear(8, 8)

        def f(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return layer(x)

        x = torch.randn(4, 8)
        found = self.compile(f)(x)
        self.assertEqual(found.dtype, torch.bfloat16)
        self.expect(found, f(x), tolerance=2e-2)

    def test_modes_of_grad_by_turns(self):
        layer = torch.nn.Linear(4, 4)
        x = torch.randn(2, 4)
        compiled = self.compile(layer)
        for mode in (torch.no_grad, torch.inference_mode, torch.no_grad):
            with mode():
                self.expect(compiled(x), layer(x))

    def test_what_needs_gradients_runs_in_eager_and_says_so(self):
        layer = torch.nn.Linear(4, 4)
        x = torch.randn(2, 4)
        compiled = self.compile(layer)
        with torch.enable_grad(), self.assertLogs("lathe.backend", "WARNING"):
            y = compiled(x)
        self.assertTrue(y.requires_grad)
        self.assertIn("needs gradients", self.report().reason)
        self.expect(compiled(x), layer(x))
        self.assertIsNone(self.report().reason)

    def test_training_mode_updates_statistics(self):
        def norm():
            return torch.nn.BatchNorm1d(3, momentum=0.5).train().requires_grad_(False)

        mine, theirs = norm(), norm()
        compiled = self.compile(mine)
        for _ in range(3):
            x = torch.randn(5, 3)
            self.expect(compiled(x), theirs(x))
            self.expect(mine.running_mean, theirs.running_mean)
            self.expect(mine.running_var, theirs.running_var)

    def test_two_threads_at_once(self):
        compiled = self.compile(lambda x: torch.cumsum(x, 0) * 2)
        expected = [torch.cumsum(torch.full((64,), float(i)), 0) * 2 for i in range(2)]
        compiled(torch.zeros(64))
        wrong = []

        def call(i):
            with torch.no_grad():
                for _ in range(200):
                    if not torch.equal(compiled(torch.full((64,), float(i))), expected[i]):
                        wrong.append(i)

        threads = [threading.Thread(target=call, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class OptionsTest(BackendTest):
    def fails(self, pattern, **options):
        with self.assertRaisesRegex(torch._dynamo.exc.BackendCompilerFailed, pattern):
            self.compile(lambda x: x + 1, **options)(torch.zeros(2))

    def test_an_unknown_option_names_the_nearest(self):
        self.fails(r"no option 'pases'; did you mean 'passes'\?", options={"pases": "default"})

    def test_a_wrong_value_says_what_is_expected(self):
        self.fails("'threads' is 'two', expected a number of threads", options={"threads": "two"})
        self.fails("'weights' is 'packed', expected one of", options={"weights": "packed"})

    def test_an_unknown_pass_is_the_users_error(self):
        self.fails("no pass named 'fuse_pointwis'", options={"passes": "default,-fuse_pointwis"})

    def test_passes_and_numerics_reach_the_compiler(self):
        def f(x):
            return torch.relu(x + 1) * 2

        x = torch.randn(100)
        self.expect(self.compile(f, options={"passes": "minimal"})(x), f(x))
        many = self.report().segments[0].kernels
        torch._dynamo.reset()
        self.expect(self.compile(f, options={"numerics": "strict"})(x), f(x))
        self.assertGreater(many, self.report().segments[0].kernels)

    def test_convolutions_keep_f32_where_pytorchs_do(self):
        Options, convolutions = lathe.backend.Options, torch.backends.cudnn.conv
        self.addCleanup(setattr, convolutions, "fp32_precision", convolutions.fp32_precision)
        for word, expected in (("tf32", None), ("ieee", "ieee"), ("none", "ieee")):
            convolutions.fp32_precision = word
            self.assertEqual(Options().of_library("cuda").get("numerics"), expected)
            self.assertNotIn("numerics", Options().of_library("cpu"))
        given = Options(numerics="default").of_library("cuda")
        self.assertEqual(given["numerics"], "default")

    def test_a_cuda_graph_that_is_skipped_can_be_an_error(self):
        options = {"mode": "reduce-overhead", "fail_on_graph_skip": True}
        self.fails("no CUDA graph: its tensors are on the CPU", options=options)
        torch._dynamo.reset()
        self.compile(torch.sin, options={"fail_on_graph_skip": True})(torch.zeros(2))

    def test_modes(self):
        x = torch.randn(8, 8)
        for mode in ("default", "reduce-overhead", "max-autotune-no-cudagraphs"):
            torch._dynamo.reset()
            self.expect(self.compile(torch.sin, mode=mode)(x), torch.sin(x))

    def test_derivatives_that_are_traced_are_not_zeros(self):
        layer = torch.nn.Linear(3, 3).requires_grad_(False)
        x = torch.randn(4, 3)

        def function(x):
            return layer(x).softmax(-1)

        for derivative in (
            lambda x: torch.func.vjp(function, x)[1](x)[0],
            lambda x: torch.func.grad(lambda x: function(x)[0, 0])(x),
            lambda x: torch.func.jvp(function, (x,), (x,))[1],
        ):
            torch._dynamo.reset()
            self.expect_eager(derivative, (x,))


if __name__ == "__main__":
    unittest.main()
