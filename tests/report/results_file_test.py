"""A results file is read whole or in part, and what could not be read is said."""

import json
import pathlib
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, "frontend/python")

import journals
import numpy as np
from lathe.report import results_file, summary


class ResultsFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "modes.sweep.jsonl")

    def read(self, data):
        self.path.write_bytes(data)
        return results_file.read(self.path)

    def refused(self, data):
        with self.assertRaises(results_file.ResultsError) as caught:
            self.read(data)
        return str(caught.exception)

    def test_a_whole_file_has_no_troubles(self):
        results = self.read(journals.journal(journals.row()))
        self.assertEqual(results.title, "What do the modes buy?")
        self.assertEqual(len(results.rows), 1)
        self.assertEqual(results.troubles, [])
        self.assertEqual(len(results.rows[0].samples["candidate"]), 20)

    def test_a_file_cut_at_any_byte_loses_its_last_row_at_most(self):
        rows = [journals.row(journals.settings(model=f"m{i}"), pairs=2) for i in range(3)]
        data = journals.journal(*rows)
        start = data.index(b"\n", data.index(b'"m1"')) + 1
        for end in range(start + 1, len(data) - 1):
            results = self.read(data[:end])
            self.assertEqual([r.model for r in results.rows], ["m0", "m1"])
            self.assertIn("the last one, as after a kill", results.troubles[0])

    def test_a_bad_line_in_the_middle_is_skipped_and_named(self):
        lines = journals.journal(*[journals.row(journals.settings(model=f"m{i}"))
                                   for i in range(4)]).splitlines(keepends=True)
        lines[3] = lines[3].replace(b"eager", b"EAGER", 1)
        results = self.read(b"".join(lines))
        self.assertEqual([r.model for r in results.rows], ["m0", "m2", "m3"])
        self.assertIn("line 4", results.troubles[0])

    def test_what_is_no_results_file_is_refused_with_what_was_expected(self):
        self.assertIn("is empty", self.refused(b""))
        self.assertIn("none of its 1 line is", self.refused(b'{"runs": []}\n'))
        self.assertIn("holds no row", self.refused(b'{"rows": []}\n'))
        self.assertIn("8 hex digits", self.refused(b"\x00\xff" * 5000))
        self.assertIn("none of its 3 lines is", self.refused(b"\n\n00000000 {}"))
        self.assertIn("holds no row", self.refused(journals.journal()))

    def test_a_folder_or_a_missing_file_is_refused(self):
        with self.assertRaisesRegex(results_file.ResultsError, "cannot be read"):
            results_file.read(self.path.parent)
        with self.assertRaisesRegex(results_file.ResultsError, "cannot be read"):
            results_file.read(self.path)

    def test_another_version_is_refused_by_its_number(self):
        head = journals.line({**journals.SWEEP, "version": 2})
        words = self.refused(head + journals.line(journals.row()))
        self.assertIn("version 2; this Lathe reads version 1", words)

    def test_unknown_kinds_are_skipped_and_counted(self):
        results = self.read(journals.journal({"kind": "weather"}, journals.row(), {}))
        self.assertEqual(len(results.rows), 1)
        self.assertEqual(results.troubles,
                         ["2 records of an unknown kind, such as 'weather', left out."])

    def test_rows_without_a_model_or_a_status_are_counted(self):
        results = self.read(journals.journal(
            journals.row(), journals.row(journals.settings(model=None)),
            {**journals.row(), "settings": 7}, {**journals.row(), "status": None}))
        self.assertEqual(len(results.rows), 1)
        self.assertIn("2 records without settings or a model left out.", results.troubles)
        self.assertIn("1 record without a status left out.", results.troubles)

    def test_the_last_row_of_a_job_stands(self):
        results = self.read(journals.journal(journals.row(seconds=1.0), journals.row(seconds=2.0)))
        self.assertEqual([r.seconds for r in results.rows], [2.0])
        self.assertEqual(results.troubles, [])

    def test_the_same_settings_by_another_build_are_said(self):
        results = self.read(journals.journal(journals.row(), journals.row(job="f" * 16)))
        self.assertEqual([r.job for r in results.rows], ["f" * 16])
        self.assertIn("measured again", results.troubles[0])

    def test_a_file_without_its_head_is_read_and_said(self):
        results = self.read(journals.journal(journals.row(), sweep=False))
        self.assertEqual(results.title, "modes")
        self.assertIn("the sweep is missing", results.troubles[0])

    def test_fields_of_any_type_are_missing_rather_than_wrong(self):
        nasty = [None, True, -1, float("nan"), float("inf"), 10 ** 400, "12", [], {}, [[[]]],
                 {"a": {"b": []}}]
        fields = [name for name in journals.row() if name not in ("kind", "settings", "status")]
        rows = [journals.row(journals.settings(model=f"{name} {i}"), **{name: value})
                for name in fields for i, value in enumerate(nasty)]
        results = self.read(journals.journal(*rows))
        self.assertEqual(len(results.rows), len(rows))
        by_name = {row.model: row for row in results.rows}
        for i in (1, 2, 3, 4, 5, 6):
            self.assertIsNone(by_name[f"first_call_ms {i}"].first_call_ms)
        json.dumps([[r.settings, r.kernels, r.fallbacks] for r in results.rows], allow_nan=False)

    def test_samples_that_are_no_positive_numbers_keep_their_places(self):
        row = journals.row(samples={"candidate": [1.0, float("nan"), 0, -2.0, None, "x", 4.0],
                                    "eager": 7})
        samples = self.read(journals.journal(row)).rows[0].samples
        self.assertEqual(len(samples["candidate"]), 7)
        self.assertEqual((samples["candidate"] > 0).tolist(),
                         [True, False, False, False, False, False, True])
        self.assertEqual(len(samples["eager"]), 0)

    def test_a_failure_always_has_a_reason(self):
        bare = journals.failed(journals.settings(), "crashed", "")
        row = self.read(journals.journal(bare)).rows[0]
        self.assertEqual(row.reason, "no reason was recorded")

    def test_text_that_would_hurt_a_terminal_or_a_file_is_made_safe(self):
        row = journals.row(journals.settings(model="a\x1b[31m\ud800\u202eb"))
        model = self.read(journals.journal(row)).rows[0].model
        self.assertEqual(model, "a\ufffd[31m\ufffd\ufffdb")
        model.encode()

    def test_a_study_becomes_rows_against_its_first_variant(self):
        rows = [{"model": "m", "variant": variant, "target": "cpu", "threads": 1, "dtype": "f32",
                 "status": status, "why": why, "compile_ms": 3.0, "samples_ms": [ms] * 9,
                 "max_abs_error": None, "peak_bytes": 7}
                for variant, status, why, ms in (("off", "ok", None, 4.0), ("on", "ok", None, 2.0),
                                                 ("bad", "wrong", "error 3", 1.0))]
        study = {"name": "q", "rows": [*rows, 7], "config": {"title": "What?"}, "environment": []}
        results = self.read(json.dumps(study, indent=1).encode())
        self.assertEqual((results.title, results.troubles), ("What?", []))
        self.assertEqual([(r.settings["backend"], r.status, r.reason) for r in results.rows],
                         [("off", "pass", ""), ("on", "pass", ""),
                          ("bad", "fail_accuracy", "error 3")])
        self.assertEqual(results.rows[1].samples["off"].tolist(), [4.0] * 9)

    def test_no_damage_makes_it_raise_anything_else(self):
        random = np.random.default_rng(11)
        whole = journals.journal(*[journals.row(journals.settings(model=f"m{i}"), pairs=3)
                                   for i in range(4)])
        study = json.dumps({"rows": [{"model": "m", "samples_ms": [1.0]}] * 3}).encode()
        read = 0
        for data in [whole, study] * 150:
            damaged = bytearray(data)
            for place in random.integers(len(data), size=random.integers(1, 6)):
                damaged[place] = random.integers(256)
            try:
                summary.summarise(self.read(bytes(damaged[: random.integers(1, len(data))])))
                read += 1
            except results_file.ResultsError:
                pass
        self.assertGreater(read, 50)

    def test_json_nested_without_end_is_skipped(self):
        body = b'{"kind":"row","settings":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        deep = b'{"kind":"row","status":"pass","settings":{"model":"m","options":' \
            + b"[" * 700 + b"]" * 700 + b"}}"
        data = b"".join(b"%08x " % zlib.crc32(b) + b + b"\n" for b in (body, deep))
        results = self.read(journals.journal(journals.row()) + data)
        self.assertEqual(len(results.rows), 1)
        self.assertEqual(len(results.troubles), 2)


if __name__ == "__main__":
    unittest.main()
