"""What other programs and reviewers read: the dashboard's columns, and Markdown that stays text."""

import csv
import io
import pathlib
import sys
import unittest

sys.path.insert(0, "frontend/python")

import journals
from lathe.report import comparison, dashboard_csv, markdown
from summary_test import suite, summarise

HOSTILE = '<img src=x onerror=alert(1)>|`*_@team #1 https://evil.example'


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class DashboardTest(unittest.TestCase):
    def test_one_configuration_is_one_file_with_the_dashboards_columns(self):
        path = pathlib.Path("out.csv")
        files = dashboard_csv.files(summarise(*suite(2.0, 3)), path)
        self.assertEqual(list(files), [path])
        self.assertEqual(files[path].splitlines()[0],
                         "dev,name,batch_size,speedup,abs_latency,compilation_latency,"
                         "compression_ratio,eager_peak_mem,dynamo_peak_mem,calls_captured,"
                         "unique_graphs,graph_breaks,unique_graph_breaks")
        row = rows_of(files[path])[0]
        self.assertEqual((row["dev"], row["name"], row["batch_size"]), ("cpu", "m0", "1"))
        self.assertAlmostEqual(float(row["speedup"]), 2, delta=0.1)
        self.assertAlmostEqual(float(row["abs_latency"]), 15, delta=2)  # ms
        self.assertAlmostEqual(float(row["compilation_latency"]), 2.385, delta=0.01)  # s
        self.assertAlmostEqual(float(row["compression_ratio"]), 26 / 21, delta=1e-4)
        self.assertEqual((row["eager_peak_mem"], row["dynamo_peak_mem"]), ("0.26", "0.21"))

    def test_each_configuration_has_a_file_of_its_own(self):
        files = dashboard_csv.files(
            summarise(*suite(), *suite(mode="a/b"), *suite(mode="a?b"), *suite(mode="../../x")),
            pathlib.Path("folder/out.csv"))
        self.assertEqual(len(files), 4)
        self.assertTrue(all(path.parent == pathlib.Path("folder") for path in files))

    def test_what_was_not_measured_is_empty_and_never_zero(self):
        bad = journals.failed(journals.settings(model="bad"), "crashed", "signal 11")
        text, = dashboard_csv.files(summarise(*suite(2.0, 3), bad), pathlib.Path("o.csv")).values()
        row = next(row for row in rows_of(text) if row["name"] == "bad")
        self.assertEqual([row[c] for c in dashboard_csv.COLUMNS[3:]], [""] * 10)

    def test_no_name_runs_as_a_formula(self):
        row = journals.row(journals.settings(model='=cmd|" /C calc"!A0'))
        text, = dashboard_csv.files(summarise(row), pathlib.Path("o.csv")).values()
        self.assertEqual(rows_of(text)[0]["name"][:2], "'=")


class MarkdownTest(unittest.TestCase):
    def test_the_answer_stands_first(self):
        text = markdown.text(summarise(*suite(2.0)), None, [])
        self.assertRegex(text.split("\n\n")[2], r"^- lathe is the fastest: \d\.\d\dx as fast as")

    def test_what_comes_from_the_file_stays_text(self):
        rows = suite() + [
            journals.row(journals.settings(model=HOSTILE)),
            journals.failed(journals.settings(model="x\n# head"), "refused", HOSTILE)]
        head = {**journals.SWEEP, "title": HOSTILE, "about": HOSTILE}
        text = markdown.text(summarise(head, *rows), None, [HOSTILE])
        for wrong in ("<img", "@team", "https://evil", "\n# head", " |`"):
            self.assertNotIn(wrong, text)

    def test_changes_are_counted_and_named(self):
        now, before = summarise(*suite(2.0)), summarise(*suite(1.5))
        text = markdown.text(now, comparison.compare(now, before), [])
        self.assertIn("8 faster, 0 slower, 0 broke, 0 mended", text)
        self.assertIn("| faster | m0 |", text)

    def test_every_table_has_as_many_cells_in_each_line(self):
        rows = suite(2.0) + suite(options={"passes": "default,-cse"}) + suite(backend="a|b")
        text = markdown.text(summarise(*rows), None, [])
        for block in text.split("\n\n"):
            lines = [line for line in block.splitlines() if line.startswith("|")]
            self.assertLessEqual(len({line.replace("\\|", "").count("|") for line in lines}), 1)


if __name__ == "__main__":
    unittest.main()
