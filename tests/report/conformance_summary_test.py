"""Journals of conformance: what is read of them, what is counted, and what is said."""

import pathlib
import sys
import unittest

sys.path.insert(0, "frontend/python")

import journals
import numpy as np
from conformance_runs import asked, case, data, done, head, many, run
from lathe.report import journal_file
from lathe.report.conformance import markdown, run_file, summary


def read(records, name="r.jsonl"):
    return run_file.from_records(pathlib.Path(name), records, [])


def compare(*runs):
    return summary.compare([read(records, f"r{i}.jsonl") for i, records in enumerate(runs)])


class RunFileTest(unittest.TestCase):
    def test_the_last_record_of_a_case_stands(self):
        found = read([head(), case("sin", 0, "crashed", "SIGSEGV"), case("sin", 0)])
        self.assertEqual([c.verdict for c in found.cases.values()], ["agrees"])

    def test_records_that_lack_what_they_need_are_counted(self):
        bad = [{"kind": "case"}, {**case("sin", 1), "case": "x"}, {**case("sin", 2), "name": 3},
               {"kind": "entry", "suite": []}, {"kind": "song"}]
        found = read([head(), case("sin", 0), *bad])
        self.assertEqual(len(found.cases), 1)
        self.assertEqual(found.troubles, [
            "r.jsonl: 4 records that lack what they need left out.",
            "r.jsonl: 1 record of an unknown kind, such as 'song', left out."])

    def test_a_file_without_cases_is_refused(self):
        with self.assertRaisesRegex(journal_file.ResultsError, "holds no case"):
            read([head()])

    def test_a_run_without_its_head_goes_by_the_name_of_its_file(self):
        found = read([case("sin", 0)], "conformance-x.jsonl")
        self.assertEqual(found.backend, "conformance-x")

    def test_sweeps_are_told_from_runs(self):
        self.assertFalse(run_file.is_run([journals.SWEEP, journals.row()]))
        self.assertTrue(run_file.is_run([case("sin", 0)]))


class SummaryTest(unittest.TestCase):
    def test_what_is_not_traced_is_not_counted(self):
        found = compare(run(case("sin", 0), case("sin", 1, "untraced", "x"),
                            case("cos", 0, "wrong", "y"), case("eig", 0, "refused", "z")))
        (line,) = found.lines
        self.assertEqual(summary.counted(line.counts[0]), 3)
        self.assertEqual(summary.missed(line.counts[0]), 2)
        self.assertEqual([entry.name for entry, _ in found.worst], ["cos", "eig"])

    def test_a_hundred_percent_is_all(self):
        for part, whole, words in ((0, 5, "0 %"), (5, 5, "100 %"), (1, 3, "33.3 %"),
                                   (9_999, 10_000, "99.99 %"), (0, 0, "–"),
                                   (99_999, 100_000, "99.999 %"), (1999, 2000, "99.95 %")):
            self.assertEqual(summary.percent(part, whole), words)

    def test_reasons_are_grouped_without_their_numbers(self):
        found = compare(run(*(case(name, i, "refused", f"a dim of {i} in {name[0]}")
                              for i, name in enumerate(("sin", "sin", "sum"))),
                            case("cos", 0, "wrong", "b")))
        self.assertEqual([(r.verdict, r.words, r.count, [e.name for e in r.entries])
                          for r in found.reasons],
                         [("wrong", "b", 1, ["cos"]),
                          ("refused", "a dim of N in s", 3, ["sin", "sum"])])

    def test_runs_stand_side_by_side(self):
        one = run(case("a", 0), case("b", 0, "wrong", "x"), case("c", 0, "refused", "y"),
                  case("d", 0, "untraced", "z"))
        two = run(case("a", 0), case("b", 0), case("c", 0, "wrong", "y"), case("e", 0),
                  backend="inductor")
        found = compare(one, two)
        self.assertEqual(dict(found.combinations), {
            ("agrees", "agrees"): 1, ("wrong", "agrees"): 1, ("refused", "wrong"): 1,
            ("untraced", None): 1, (None, "agrees"): 1})
        self.assertIn("Of 3 cases that count for each of them, all agree in 1, lathe alone in 0, "
                      "inductor alone in 1, none in 1.", summary.sentences(found))
        self.assertTrue(any("1 of lathe, 1 of inductor" in d for d in found.doubts))

    def test_labels_are_words_of_their_own(self):
        labels = compare(run(case("a", 0)), run(case("a", 0)),
                         run(case("a", 0), backend="my own:backend"),
                         run(case("a", 0), backend="name")).labels
        self.assertEqual(labels, ["lathe_r0", "lathe_r1", "my_own_backend", "name+"])

    def test_configurations_are_left_out_of_names_where_that_is_clear(self):
        found = compare(run(*(case(name, 0, suite="models")
                              for name in ('A{"n": 1}', 'A{"n": 2}', 'B{"n": 1}'))))
        self.assertEqual([one.entry.label for one in found.cases],
                         ['A{"n": 1}', 'A{"n": 2}', "B"])

    def test_what_is_missing_is_said(self):
        cases = [case("a", 0), case("b", 0, "odd", "x")]
        doubts = compare([head(share=0.1, seed=3), asked(3), *cases, *done(cases[0])],
                         run(case("a", 0), backend="inductor")).doubts
        for words in ("2 of 3 entries of ops in f32 are not done", "a share of 0.1 of the cases, "
                      "drawn by seed 3", "1 case with a verdict that this Lathe does not know "
                      "('odd')", "The runs differ in share: lathe 0.1, inductor 1.0.",
                      "the cases come from unknown machines"):
            self.assertTrue(any(words in doubt for doubt in doubts), (words, doubts))
        self.assertEqual(compare(run(case("a", 0))).doubts, [])

    def test_values_of_any_type_in_any_place_are_read(self):
        random = np.random.default_rng(3)
        nasty = [None, True, -1, 1e308, float("nan"), 10**400, "", "\ud800", [], {}, [[1]],
                 {"a": {"b": 1}}, "<b>" * 5000]

        def spoil(value):
            if random.random() < 0.1:
                return nasty[random.integers(len(nasty))]
            if isinstance(value, dict):
                return {name: v if name == "kind" else spoil(v) for name, v in value.items()}
            return [spoil(v) for v in value] if isinstance(value, list) else value

        for _ in range(40):
            records = [spoil(r) if isinstance(r, dict) else r for r in many(9, 3, every=2)]
            records = [r for r in records if isinstance(r, dict)]
            markdown.text(compare(records, many(9, 3, "inductor")))


class MarkdownTest(unittest.TestCase):
    def test_every_run_has_its_line_and_every_reason_its_count(self):
        text = markdown.text(compare(run(case("a", 0), case("b", 0, "wrong", "x | y")),
                                     run(case("a", 0), backend="inductor")))
        self.assertIn("| ops | f32 | lathe | 50.0 % | 2 | 1 | 0 | 0 | 0 | 0 |", text)
        self.assertIn("| ops | f32 | inductor | 100 % | 1 | 0 | 0 | 0 | 0 | 0 |", text)
        self.assertIn("| 1 | lathe | wrong | x \\| y | b |", text)

    def test_nothing_of_the_file_becomes_markup(self):
        text = markdown.text(compare(run(case("<b>", 0, "wrong", "<script> @all"),
                                         backend="<img src=x>")))
        self.assertNotIn("<script>", text)
        self.assertNotIn("<img", text)
        self.assertNotIn("@all", text)

    def test_the_bytes_of_a_journal_are_read(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "run.jsonl")
            whole = data(run(case("a", 0), case("b", 0)))
            path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) - 20])
            found = run_file.read(path)
        self.assertEqual(len(found.cases), 2)
        self.assertIn("torn", found.troubles[0])


if __name__ == "__main__":
    unittest.main()
