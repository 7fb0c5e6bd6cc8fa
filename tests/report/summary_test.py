"""What stands in the tables: pass rates, means, names, doubts; nothing missing becomes a zero."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, "frontend/python")

import journals
from lathe.report import ablation, answer, comparison, results_file, summary, trust


def summarise(*records, **head):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "modes.sweep.jsonl")
        path.write_bytes(journals.journal(*records, **head))
        return summary.summarise(results_file.read(path))


def suite(speedup=1.5, count=8, **changed):
    """One configuration over several models."""
    return [journals.row(journals.settings(model=f"m{i}", **changed), speedup=speedup)
            for i in range(count)]


class SummaryTest(unittest.TestCase):
    def test_failed_rows_count_in_the_pass_rate_and_not_in_the_mean(self):
        rows = suite(2.0) + [journals.failed(journals.settings(model="bad"), "timeout", "600 s")]
        line = summarise(*rows).lines[0]
        self.assertEqual((line.passed, line.total), (8, 9))
        self.assertAlmostEqual(line.speedups["eager"].value, 2.0, delta=0.05)
        self.assertEqual(line.speedups["eager"].count, 8)

    def test_a_wrong_result_is_no_speed_up(self):
        rows = suite(2.0, 3) + [journals.row(journals.settings(model="w"), speedup=100,
                                             status="fail_accuracy", reason="error 3")]
        self.assertLess(summarise(*rows).lines[0].speedups["eager"].value, 3)

    def test_the_dashboard_counts_a_slow_down_as_one(self):
        rows = suite(2.0, 3) + suite(0.5, 6)[3:]
        line = summarise(*rows).lines[0]
        self.assertAlmostEqual(line.speedups["eager"].value, 1.0, delta=0.05)
        self.assertAlmostEqual(line.clamped, 2 ** 0.5, delta=0.05)

    def test_names_say_only_what_differs(self):
        found = summarise(*suite(), *suite(backend="inductor", mode="max-autotune"),
                          *suite(options={"passes": "default,-cse,-fuse_epilogue"}))
        self.assertEqual({line.configuration.label for line in found.lines},
                         {"lathe", "inductor max-autotune", "lathe \u2212cse \u2212fuse_epilogue"})

    def test_a_batch_size_of_each_model_makes_no_configurations(self):
        rows = [journals.row(journals.settings(model=f"m{i}", batch=i + 1)) for i in range(4)]
        self.assertEqual(len(summarise(*rows).lines), 1)
        rows.append(journals.row(journals.settings(model="m0", batch=64)))
        self.assertEqual(len(summarise(*rows).lines), 5)

    def test_settings_that_this_lathe_does_not_know_still_tell_rows_apart(self):
        found = summarise(*suite(colour="red"), *suite(colour=["blue", {"a": None}]), *suite())
        self.assertEqual(len(found.lines), 3)
        self.assertTrue(any("colour=red" in line.configuration.label for line in found.lines))

    def test_models_of_one_name_from_two_sources_stay_apart(self):
        found = summarise(journals.row(), journals.row(journals.settings(source="timm")))
        self.assertEqual(found.models, ["resnet18 (timm)", "resnet18 (zoo)"])

    def test_what_was_not_measured_is_missing(self):
        bare = journals.row(samples={}, first_call_ms=None, warm_first_call_ms=None,
                            compile_ms=None, peak_memory_bytes=None, accuracy=None,
                            against_peak_memory_bytes={}, graph_breaks=None, fallbacks=None)
        found = summarise(bare)
        line = found.lines[0]
        self.assertIsNone(found.baseline)
        for value in (line.clamped, line.first_call_ms, line.compile_ms, line.memory, line.worst,
                      line.graph_breaks, line.fallbacks, found.measured[0].median_ms):
            self.assertIsNone(value)
        self.assertIn("no speed-up at all", " ".join(trust.doubts(found)))
        self.assertEqual(answer.sentences(found), ["1 of 1 row passed."])

    def test_a_file_in_which_all_failed_still_reports(self):
        found = summarise(*[journals.failed(journals.settings(model=f"m{i}"), "crashed", "11")
                            for i in range(3)])
        self.assertEqual(answer.sentences(found), ["0 of 3 rows passed; 3 crashed."])

    def test_what_is_not_faster_is_not_called_the_fastest(self):
        self.assertIn("Nothing is as fast as eager; lathe comes nearest",
                      answer.sentences(summarise(*suite(0.5)))[0])
        mixed = suite(1.3, 8)[:4] + suite(1 / 1.3, 8)[4:]
        self.assertIn("cannot be told from eager", answer.sentences(summarise(*mixed))[0])

    def test_backends_are_compared_over_the_models_that_both_pass(self):
        rows = suite(1.5) + suite(1.2, backend="inductor")[2:]
        words = " ".join(answer.sentences(summarise(*rows)))
        self.assertIn("Against inductor it is 1.2", words)
        self.assertIn("over the 6 models that both pass", words)


class DoubtsTest(unittest.TestCase):
    def doubts(self, *records, **head):
        return " ".join(trust.doubts(summarise(*records, **head)))

    def test_a_clean_file_leaves_none(self):
        self.assertEqual(self.doubts(*suite()), "")

    def test_an_unfinished_sweep_is_said(self):
        head = {**journals.SWEEP, "jobs": 12}
        words = self.doubts(head, *suite())
        self.assertIn("4 of 12 jobs have no row yet", words)

    def test_mixed_machines_are_said(self):
        other = {**journals.ENVIRONMENT, "id": "b", "cpu": "Intel Xeon"}
        rows = suite() + [journals.row(journals.settings(model="x"), environment="b"),
                          journals.row(journals.settings(model="y"), environment="nowhere")]
        words = self.doubts(other, *rows)
        self.assertIn("2 processors (AMD EPYC 9R14, Intel Xeon)", words)
        self.assertIn("1 row from an environment that the file does not", words)

    def test_few_pairs_and_lost_samples_are_said(self):
        odd = journals.row(journals.settings(model="odd"))
        odd["samples"]["eager"] = odd["samples"]["eager"][:-3]
        none = journals.row(journals.settings(model="none"), samples={"candidate": []})
        words = self.doubts(journals.row(pairs=1), odd, none)
        self.assertIn("1 row with fewer than 6 pairs", words)
        self.assertIn("3 samples without a partner", words)
        self.assertIn("1 row passed without a single usable sample", words)
        self.assertIn("1 row passed without pairs with eager", words)

    def test_eager_against_itself_says_what_the_method_gets_wrong(self):
        self.assertIn("Eager against itself, 8 rows",
                      self.doubts(*suite(1.0, backend="eager")))

    def test_a_status_of_another_version_counts_as_failed_and_is_said(self):
        found = summarise(*suite(), journals.row(journals.settings(model="x"), status="flaky"))
        self.assertEqual(found.lines[0].passed, 8)
        self.assertIn("'flaky'", " ".join(trust.doubts(found)))


class AblationTest(unittest.TestCase):
    def test_each_row_says_what_it_costs_to_do_without(self):
        found = summarise(*suite(2.0), *suite(1.0, options={"passes": "default,-fuse_pointwise"}),
                          *suite(1.8, options={"passes": "default,-cse"}),
                          *suite(1.5, backend="inductor"))
        table, = ablation.tables(found)
        self.assertEqual([name for name, _ in table.rows], ["\u2212fuse_pointwise", "\u2212cse"])
        cell = table.rows[0][1][0]
        self.assertAlmostEqual(cell.slowdown.value, 2.0, delta=0.05)
        self.assertTrue(cell.slowdown.low <= 2 <= cell.slowdown.high)
        self.assertAlmostEqual(cell.speedup, 1.0, delta=0.03)
        self.assertAlmostEqual(table.full[0], 2.0, delta=0.05)

    def test_only_models_that_pass_in_both_are_compared(self):
        without = suite(1.0, options={"passes": "default,-cse"})
        without[0] = journals.failed(journals.settings(
            model="m0", options={"passes": "default,-cse"}), "refused", "no")
        table, = ablation.tables(summarise(*suite(2.0), *without))
        cell = table.rows[0][1][0]
        self.assertEqual((cell.slowdown.count, cell.only_full), (7, 1))

    def test_groups_of_models_and_dtypes_are_columns(self):
        rows = []
        for source in ("zoo", "timm"):
            for dtype in ("float32", "bfloat16"):
                rows += suite(2.0, source=source, dtype=dtype)
                rows += suite(1.6, source=source, dtype=dtype, options={"freezing": False})
        machines, sources = ablation.tables(summarise(*rows))
        self.assertEqual(machines.columns, ["CPU bfloat16", "CPU float32"])
        self.assertEqual(sources.columns, ["timm", "zoo"])
        self.assertEqual(machines.rows[0][0], "freezing=False")

    def test_nothing_is_said_where_nothing_was_taken_out(self):
        self.assertEqual(ablation.tables(summarise(*suite())), [])


class ComparisonTest(unittest.TestCase):
    def test_each_change_gets_its_verdict(self):
        before = suite(1.5, 6)
        now = suite(1.5, 6)
        now[0] = journals.row(journals.settings(model="m0"), speedup=2.0)
        now[1] = journals.row(journals.settings(model="m1"), speedup=1.0)
        now[2] = journals.failed(journals.settings(model="m2"), "timeout", "600 s")
        before[3] = journals.failed(journals.settings(model="m3"), "refused", "no")
        now[4] = journals.row(journals.settings(model="m4"), samples={"candidate": [1.0]})
        now.append(journals.row(journals.settings(model="new")))
        found = comparison.compare(summarise(*now), summarise(*before, *suite(backend="old")))
        self.assertEqual({c.now.model: c.verdict for c in found.changes},
                         {"m0": "faster", "m1": "slower", "m2": "broke", "m3": "mended",
                          "m4": "incomparable", "m5": "same"})
        self.assertEqual((found.added, found.gone), (1, 8))
        self.assertAlmostEqual(found.of("faster")[0].ratio.value, 2 / 1.5, delta=0.05)

    def test_noise_is_not_called_a_change(self):
        def noisy(seed):
            return [journals.row(journals.settings(model=f"m{i}"), job=f"{seed + i:016x}",
                                 noise=0.1, seed=seed) for i in range(200)]
        found = comparison.compare(summarise(*noisy(1)), summarise(*noisy(10_000)))
        self.assertGreater(max(abs(c.ratio.value - 1) for c in found.changes), 0.05)
        self.assertLessEqual(len(found.of("faster")) + len(found.of("slower")), 2)

    def test_a_file_against_itself_has_no_change(self):
        one = summarise(*suite())
        found = comparison.compare(one, one)
        self.assertEqual({c.verdict for c in found.changes}, {"same"})
        self.assertAlmostEqual(found.geomean.value, 1)

    def test_another_machine_is_noted(self):
        other = {**journals.ENVIRONMENT, "cpu": "Intel Xeon"}
        found = comparison.compare(summarise(*suite()),
                                   summarise(other, *suite(), environment=False))
        self.assertIn("The processors differ: Intel Xeon before", found.notes[0])


if __name__ == "__main__":
    unittest.main()
