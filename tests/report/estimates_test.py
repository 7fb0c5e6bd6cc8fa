"""Speed-ups are medians of pairs, and their intervals hold the truth as often as they say."""

import sys
import unittest

sys.path.insert(0, "frontend/python")

import numpy as np
from lathe.report import estimates


def drifting(random, pairs, speedup):
    """Samples of two programs on a machine whose speed wanders by a tenth."""
    drift = np.exp(np.cumsum(random.normal(0, 0.03, pairs)))
    return (drift * np.exp(random.normal(0, 0.02, pairs)),
            drift / speedup * np.exp(random.normal(0, 0.02, pairs)))


class EstimatesTest(unittest.TestCase):
    def test_an_interval_of_pairs_holds_the_truth_in_95_of_100(self):
        random = np.random.default_rng(3)
        held, trials = 0, 1000
        for i in range(trials):
            ratios, _ = estimates.paired_log_ratios(*drifting(random, 20, 1.3))
            one = estimates.of_pairs(ratios, f"job {i}")
            held += one.low <= 1.3 <= one.high
        self.assertGreater(held / trials, 0.92)
        self.assertLess(held / trials, 0.985)

    def test_draws_without_resampling_are_those_of_resampling(self):
        random = np.random.default_rng(4)
        for count in (6, 7, 20, 31):
            values = random.normal(0, 1, count)
            plain = np.median(values[random.integers(count, size=(20_000, count))], axis=1)
            ours = np.concatenate([estimates.of_pairs(values, f"{count} {i}").draws
                                   for i in range(10)])
            for quantile in (0.025, 0.25, 0.5, 0.75, 0.975):
                # In ranks, since a median only takes a few values.
                rank = np.mean(ours <= np.quantile(plain, quantile))
                least = np.mean(plain <= np.quantile(plain, quantile))
                self.assertAlmostEqual(rank, least, delta=0.015)

    def test_an_interval_over_models_holds_the_truth_of_their_kind(self):
        random = np.random.default_rng(5)
        held, trials = 0, 300
        for trial in range(trials):
            models = [estimates.of_pairs(estimates.paired_log_ratios(
                *drifting(random, 12, np.exp(random.normal(0.3, 0.2))))[0], f"{trial} {i}")
                for i in range(20)]
            one = estimates.over_models(models, f"suite {trial}")
            held += one.low <= np.exp(0.3) <= one.high
        self.assertGreater(held / trials, 0.89)
        self.assertLess(held / trials, 0.985)

    def test_drift_that_both_sides_share_cancels(self):
        base = np.linspace(1, 5, 40)
        one = estimates.of_pairs(estimates.paired_log_ratios(base, base / 2)[0], "job")
        self.assertAlmostEqual(one.low, 2)
        self.assertAlmostEqual(one.high, 2)

    def test_equal_input_gives_equal_intervals(self):
        values = np.random.default_rng(1).normal(0, 1, 15)
        first, second = (estimates.of_pairs(values, "job") for _ in range(2))
        self.assertEqual((first.low, first.high), (second.low, second.high))

    def test_too_few_pairs_have_a_value_and_a_reason_but_no_interval(self):
        self.assertIsNone(estimates.of_pairs(np.empty(0), "job"))
        one = estimates.of_pairs(np.log([2.0]), "job")
        self.assertAlmostEqual(one.value, 2)
        self.assertIsNone(one.low)
        self.assertEqual(one.why_no_interval, "only 1 pair")
        self.assertIsNotNone(estimates.of_pairs(np.zeros(estimates.FEWEST_PAIRS), "job").low)

    def test_too_few_models_have_no_interval_over_models(self):
        one = estimates.of_pairs(np.random.default_rng(1).normal(0, 1, 15), "job")
        self.assertEqual(estimates.over_models([one, one], "x").why_no_interval, "only 2 models")
        self.assertEqual(estimates.over_models([one], "x").low, one.low)
        self.assertIsNone(estimates.over_models([], "x"))

    def test_unusable_samples_leave_the_pairs_and_are_counted(self):
        base = np.array([2.0, np.nan, 2.0, 2.0])
        ratios, dropped = estimates.paired_log_ratios(base, np.array([1.0, 1.0, np.nan]))
        self.assertEqual(ratios.tolist(), [np.log(2)])
        self.assertEqual(dropped, 3)

    def test_rows_of_one_model_do_not_count_as_models(self):
        random = np.random.default_rng(2)
        rows = [estimates.of_pairs(random.normal(0.3, 0.05, 20), str(i)) for i in range(6)]
        one = estimates.by_model({"bert": rows}, "x")
        self.assertLess(one.high / one.low, rows[0].high / rows[0].low)
        self.assertEqual(estimates.by_model({"a": rows[:3], "b": rows[3:]}, "x").why_no_interval,
                         "only 2 models")

    def test_few_of_many_chance_findings_stand(self):
        chances = np.random.default_rng(6).uniform(size=1000)
        self.assertLess(estimates.discoveries(chances).sum(), 5)
        chances[:50] = 1e-6
        self.assertGreaterEqual(estimates.discoveries(chances)[:50].sum(), 50)
        self.assertEqual(len(estimates.discoveries([])), 0)


if __name__ == "__main__":
    unittest.main()
