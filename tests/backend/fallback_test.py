"""Calls that Lathe refuses run in eager, alone, and are reported."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, lathe  # noqa: E402

# A call that Lathe has no op for, and never will under this name.
library = torch.library.Library("lathe_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")


@torch.library.register_fake("lathe_test::twice")
def _(x):
    return torch.empty_like(x)


twice = torch.ops.lathe_test.twice
library.define("address(Tensor x) -> Tensor")
library.impl("address", lambda x: torch.tensor(x.data_ptr()), "CompositeExplicitAutograd")


@torch.library.register_fake("lathe_test::address")
def _(x):
    return torch.empty((), dtype=torch.int64)


class FallbackTest(BackendTest):
    def test_few_of_rows_whose_length_varies_are_taken_by_eager(self):
        def f(x):
            return x.sort().values + x.topk(2).values.sum()

        for size, dynamic, in_eager in ((7, False, 0), (20000, False, 0), (20000, True, 1)):
            lathe.backend.clear_reports()
            torch._dynamo.reset()
            x = torch.randn(2, size)
            compiled = torch.compile(f, backend="lathe", dynamic=dynamic)
            torch.testing.assert_close(compiled(x), f(x))
            self.assertEqual(sum(f.count for f in self.report().fallbacks), in_eager)

    def test_products_of_runs_of_rows_are_eagers(self):
        a, b = torch.randn(24, 16).bfloat16(), torch.randn(3, 16, 8).bfloat16()
        ends = torch.tensor([3, 3, 24], dtype=torch.int32)
        self.expect_eager(lambda a: torch._grouped_mm(a * 2, b, ends) + 1, (a,), in_eager=1)
        self.assertIn("faster", self.report().fallbacks[0].reason)

    def test_few_of_a_row_of_known_length_are_not_eagers(self):
        calls = [(torch.randn(n, 8),) for n in (5, 3)]
        self.expect_eager(lambda x: x.reshape(-1, 8).topk(2)[0], *calls, dynamic=True)

    def test_random_numbers_are_those_of_the_generator(self):
        def f(x):
            return torch.nn.functional.dropout(x * 2, 0.5, training=True) + 1

        compiled = torch.compile(f, backend="lathe")
        x = torch.randn(64)
        for seed in (1, 2):
            torch.manual_seed(seed)
            wanted = f(x)
            torch.manual_seed(seed)
            self.assertTrue(torch.equal(compiled(x), wanted))
        self.assertTrue(all("generator" in f.reason for f in self.report().fallbacks))

    def test_one_call_runs_in_eager_wherever_it_stands(self):
        calls = [torch.relu, torch.sin, lambda x: x @ x.t(), lambda x: x.softmax(-1)]
        for at in range(len(calls) + 1):
            torch._dynamo.reset()
            lathe.backend.clear_reports()

            def f(x, at=at):
                for call in [*calls[:at], twice, *calls[at:]]:
                    x = call(x)
                return x

            self.expect_eager(f, (torch.randn(4, 4),), in_eager=1)
            self.assertEqual(len(self.report().segments), 2 if at in (0, len(calls)) else 3)

    def test_views_that_eager_reads_are_no_copies(self):
        weight, x = torch.nn.Parameter(torch.randn(6, 4)), torch.randn(3, 4)

        def f(x):
            part = weight.t()[1:, 2:]
            y = x @ weight.t() + part.sum()
            return y, torch.ops.lathe_test.address(part), twice(part.unsqueeze(0)) + y[0, 0]

        for dynamic in (False, True):
            torch._dynamo.reset()
            with torch.no_grad():
                compiled = torch.compile(f, backend="lathe", dynamic=dynamic)
                torch.testing.assert_close(compiled(x), f(x))
                self.assertEqual(compiled(x)[1], weight.t()[1:, 2:].data_ptr())

    def test_views_between_calls_in_eager_are_theirs(self):
        def f(x):
            return twice(twice(x).reshape(2, -1, 2).transpose(0, 2)[1:]) + 1

        self.expect_eager(f, (torch.randn(4, 6),), in_eager=2)
        self.assertEqual([s.runs_in for s in self.report().segments], ["eager", "lathe"])

    def test_the_report_names_op_count_reason_and_line(self):
        def f(x):
            y = twice(x + 1)
            return twice(y) - 1

        with self.assertLogs("lathe.backend", "WARNING") as logs:
            self.expect_eager(f, (torch.randn(3),), in_eager=2)
        (fallback,) = self.report().fallbacks
        self.assertEqual((fallback.op, fallback.count), ("lathe_test.twice.default", 2))
        self.assertEqual(fallback.reason, "Lathe has no op for 'lathe_test.twice.default'")
        self.assertRegex(fallback.line, r"fallback_test\.py:\d+: y = twice\(x \+ 1\)")
        self.assertIn("2 of 4 calls run in Lathe", logs.output[0])
        self.assertTrue(all(s.calls > 0 for s in self.report().segments))

    def test_sizes_that_vary_cross_the_cut(self):
        def f(x):
            y = (x * 2).reshape(-1)
            z = twice(y)
            return z.reshape(x.shape[1], x.shape[0]) + x.t(), x.shape[0] * 3

        calls = [(torch.randn(n, 6),) for n in (4, 5, 9, 2)]
        self.expect_eager(f, *calls, in_eager=1, dynamic=True)

    def test_numbers_of_sizes_cross_the_cut(self):
        def f(x):
            y = x.relu() * 2
            half = (x.shape[1] + 1) // 2
            return torch.rand(half) * 0 + y[0, :half], twice(y * half).sum(), half

        self.expect_eager(f, *[(torch.randn(6, n),) for n in (6, 7, 3)], in_eager=None,
                          dynamic=True)

    def test_numbers_that_elements_decide_cross_the_cut(self):
        def f(x):
            count = (x.sum() * 0 + 3).int().item()
            torch._check(count >= 0)
            torch._check(count < 50)
            drawn = torch.rand(count * 2 + x.shape[0]) * 0 + 1
            return drawn[:count], count, count * 3, x * count

        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            self.expect_eager(f, (torch.randn(3, 4),), in_eager=None, fullgraph=True)

    def test_elements_that_are_returned_as_numbers_are_numbers(self):
        def f(x):
            count = (x.sum() * 0 + 3).int().item()
            return x.relu(), count

        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            compiled = self.expect_eager(f, (torch.randn(3, 4),), fullgraph=True)
            self.assertIs(type(compiled(torch.randn(3, 4))[1]), int)

    def test_a_size_that_is_0_at_first(self):
        def f(x):
            return torch.nn.functional.pad(x, (0, -x.shape[1] % 8)) + 1

        self.expect_eager(f, *[(torch.randn(3, n),) for n in (8, 5)], dynamic=True)

    def test_several_results_cross_the_cut(self):
        def f(x):
            a, b = torch.split(twice(x), 2)
            values, indices = torch.max(a, 1)
            return twice(values), indices, b

        self.expect_eager(f, (torch.randn(4, 5),), in_eager=2)

    def test_strides_that_eager_relies_on(self):
        def f(x):
            return torch.as_strided(twice((x * 2).t()), (3,), (2,))

        self.expect_eager(f, (torch.randn(4, 5),), in_eager=1)

    def test_repeated_elements_cross_the_cut(self):
        def f(x):
            return twice((x * 2).expand(3, 4)) + 1

        self.expect_eager(f, (torch.randn(4),), in_eager=1)

    def test_random_numbers_are_eagers(self):
        def f(x):
            return torch.rand_like(x) + torch.nn.functional.dropout(x, 0.5, True)

        x = torch.ones(100)
        compiled = self.compile(f)
        for _ in range(2):
            state = torch.get_rng_state()
            found = compiled(x)
            after = torch.get_rng_state()
            torch.set_rng_state(state)
            self.expect(found, f(x))
            self.assertTrue(torch.equal(after, torch.get_rng_state()))

    def test_data_decided_sizes_run_in_eager(self):
        torch._dynamo.config.capture_dynamic_output_shape_ops = True
        self.addCleanup(setattr, torch._dynamo.config, "capture_dynamic_output_shape_ops", False)

        def f(x):
            return (x * 2)[x > 0].sum() + x.sum()

        compiled = self.compile(f)
        for _ in range(3):
            x = torch.randn(20)
            self.expect(compiled(x), f(x))

    def test_a_result_whose_size_is_decided_by_elements(self):
        torch._dynamo.config.capture_dynamic_output_shape_ops = True
        self.addCleanup(setattr, torch._dynamo.config, "capture_dynamic_output_shape_ops", False)

        def f(x):
            places = (x * 2).nonzero()
            return places, places.t() + 1, x.sum()

        compiled = self.compile(f)
        for _ in range(3):
            x = torch.randn(5, 4).relu()
            self.expect(compiled(x), f(x))

    def test_a_changed_input_behind_the_cut(self):
        def f(x):
            x.add_(twice(x) + 1)
            return x * 3

        self.expect_eager(f, (torch.randn(4),), in_eager=1)

    def test_weights_on_both_sides(self):
        first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        compiled = self.expect_eager(
            lambda x: second(twice(first(x))), (torch.randn(2, 4),), in_eager=1
        )
        second.weight.add_(1)
        x = torch.randn(2, 4)
        self.expect(compiled(x), second(twice(first(x))))

    def test_checks_come_last(self):
        def f(x, y):
            z = torch.linalg.inv(torch.linalg.inv(x) + 1) @ x
            y.add_(1)
            return z.sin()

        compiled = self.expect_eager(f, (torch.eye(3) * 2, torch.zeros(2)), in_eager=2)
        places = [s.runs_in for s in self.report().segments if s.calls]
        self.assertEqual(places[:2], ["lathe", "eager"])
        y = torch.zeros(2)
        with self.assertRaisesRegex(RuntimeError, "linalg.inv: .* is singular"):
            compiled(torch.zeros(3, 3), y)
        self.assertEqual(y.tolist(), [0, 0])

    def test_a_graph_for_each_row(self):
        from torch._higher_order_ops.map import map as for_rows
        from torch._higher_order_ops.scan import scan

        def mapped(x, y):
            return for_rows(lambda a, b: (a * b).softmax(-1), x, y) + 1

        def scanned(first, rows):
            return scan(lambda carry, row: (carry + row, carry * row), first, rows)

        self.expect_eager(mapped, (torch.randn(3, 4), torch.randn(4)), in_eager=0)
        self.expect_eager(scanned, (torch.randn(4), torch.randn(3, 4)), in_eager=0)

    def test_complex_numbers_cross_the_cut(self):
        self.expect_eager(lambda x: twice(torch.fft.fft(x * 2)).real + 1, (torch.randn(8),),
                          in_eager=1)

    def test_tensors_of_another_device_stay_there(self):
        def f(x):
            return x * 2, torch.ones(2, device="meta") + 1

        found = self.compile(f)(torch.ones(3))
        self.assertEqual(found[1].device.type, "meta")
        self.expect(found[0], torch.full((3,), 2.0))
        self.assertEqual(self.report().calls_in_lathe, 1)
        self.assertIn("a tensor is on 'meta', others on 'cpu'", str(self.report()))

    def test_constants_on_both_sides(self):
        def f(x):
            return twice(x + torch.tensor([1.0, 2.0])) * torch.tensor([3.0, 4.0])

        self.expect_eager(f, (torch.randn(2),), in_eager=1)

    def test_fail_on_fallback(self):
        compiled = self.compile(lambda x: twice(x) + 1, options={"fail_on_fallback": True})
        with self.assertRaisesRegex(
            torch._dynamo.exc.BackendCompilerFailed, "no op for 'lathe_test.twice.default'"
        ):
            compiled(torch.randn(3))

    def test_a_budget_of_compile_time(self):
        def f(x):
            return torch.relu(x) + 1

        x = torch.randn(3)
        self.expect(self.compile(f, options={"compile_seconds": 1e-9})(x), f(x))
        self.assertIn("compile_seconds=1e-09 are over", str(self.report()))
        self.assertEqual(self.report().calls_in_lathe, 0)


if __name__ == "__main__":
    unittest.main()
