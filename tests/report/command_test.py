"""python -m lathe.report: what it writes, and what it refuses before it works."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "frontend/python")

import conformance_runs
import journals
from summary_test import suite

PACKAGE = pathlib.Path("frontend/python").resolve()


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.results = self.folder / "modes.sweep.jsonl"
        self.results.write_bytes(journals.journal(*suite(), *suite(1.2, backend="inductor")))

    def report(self, *words, expect=0):
        paths = [str(PACKAGE), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run([sys.executable, "-B", "-m", "lathe.report", *map(str, words)],
                              cwd=self.folder, text=True, capture_output=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_several_outputs_are_written_and_named(self):
        out = self.report(self.results, "-o", "a.md", "-o", "a.csv", "--against", self.results)
        self.assertEqual(out.split(), ["a.md", "a_lathe.csv", "a_inductor.csv"])
        self.assertEqual(self.names(), ["a.md", "a_inductor.csv", "a_lathe.csv",
                                        "modes.sweep.jsonl"])

    def test_an_unknown_format_names_the_nearest(self):
        self.assertIn("did you mean 'a.html'?", self.report(self.results, "-o", "a.htm", expect=2))
        self.assertIn("expected one of .html, .csv, .md",
                      self.report(self.results, "-o", "a", expect=2))

    def test_a_missing_file_names_the_nearest(self):
        words = self.report("mods.sweep.jsonl", "-o", "a.md", expect=2)
        self.assertIn("did you mean 'modes.sweep.jsonl'?", words)

    def test_places_that_cannot_be_written_are_refused_first(self):
        self.assertIn("there is no folder 'no'", self.report("x", "-o", "no/a.md", expect=2))
        (self.folder / "d.md").mkdir()
        self.assertIn("is a folder", self.report(self.results, "-o", "d.md", expect=2))
        self.assertIn("is a file; --svg expects a folder",
                      self.report(self.results, "--svg", self.results, expect=2))

    def test_the_results_are_never_overwritten(self):
        link = self.folder / "link.md"
        link.symlink_to(self.results)
        before = self.results.read_bytes()
        self.assertIn("would overwrite", self.report(self.results, "-o", link, expect=2))
        self.assertEqual(self.results.read_bytes(), before)

    def test_a_bad_file_leaves_nothing_behind(self):
        bad = self.folder / "bad.sweep.jsonl"
        for data in (b"", b"{}", b"\xff" * 100, journals.journal()):
            bad.write_bytes(data)
            self.assertIn("error: ", self.report(bad, "-o", "a.md", expect=2))
            self.assertIn("error: ", self.report(self.results, "--against", bad, "-o", "a.md",
                                                 expect=2))
        self.assertEqual(self.names(), ["bad.sweep.jsonl", "modes.sweep.jsonl"])

    def test_a_library_that_is_missing_is_named_with_its_command(self):
        (self.folder / "vl_convert.py").write_text("raise ImportError('none here')\n")
        words = self.report(self.results, "-o", "a.html", expect=2)
        self.assertRegex(words, "needs (vl-convert-python|Jinja2): pip install ")
        self.assertNotIn("a.html", self.names())

    def test_a_link_leads_to_the_file_that_is_written(self):
        target = self.folder / "target.md"
        target.write_text("old")
        link = self.folder / "link.md"
        link.symlink_to(target)
        self.report(self.results, "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertIn("## What do the modes buy?", target.read_text())

    def conformance(self, backend):
        path = self.folder / f"conformance-{backend}.jsonl"
        path.write_bytes(conformance_runs.data(conformance_runs.many(4, 2, backend)))
        return path

    def test_runs_of_conformance_stand_side_by_side(self):
        paths = [self.conformance(backend) for backend in ("lathe", "inductor")]
        self.assertEqual(self.report(*paths, "-o", "a.md").split(), ["a.md"])
        self.assertIn("## What lathe and inductor get right", (self.folder / "a.md").read_text())

    def test_what_is_of_speed_is_refused_for_conformance(self):
        run = self.conformance("lathe")
        for words, said in (((run, "-o", "a.csv"), "expected one of .html, .md"),
                            ((run, "--svg", "figures"), "has no plots"),
                            ((run, "--against", run, "-o", "a.md"), "side by side"),
                            ((run, self.results, "-o", "a.md"), "holds no case"),
                            ((self.results, run, "-o", "a.md"), "holds no conformance")):
            self.assertIn(said, self.report(*words, expect=2))
        self.assertEqual(self.names(), ["conformance-lathe.jsonl", "modes.sweep.jsonl"])

    def test_help_names_every_option(self):
        words = self.report("--help")
        for option in ("RESULTS", "--against", "--output", "--svg"):
            self.assertIn(option, words)


if __name__ == "__main__":
    unittest.main()
