"""Every row of MODELS.md: what it says imports, compiles and agrees does."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / "frontend/python"))

try:
    import timm, torch, torchvision, transformers  # noqa: E401, F401
except ImportError as error:
    raise unittest.SkipTest(f"needs the packages of sweeps: {error}") from None

from lathe.conformance import models_page
from lathe.sweep import journal


class ModelsTest(unittest.TestCase):
    def expect_rows(self, suite):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder, "results.jsonl")
            process = subprocess.run(
                [sys.executable, "-m", "lathe.conformance", "--backend", "export", "--suite", suite,
                 "--option", "threads=1", "--results", str(results)], capture_output=True,
                text=True, env=os.environ | {"PYTHONPATH": str(ROOT / "frontend/python")})
            self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
            page = models_page.page(journal.read(results)[0])
        title = models_page.SUITES[suite]
        found = models_page.rows_of(page)[title]
        written = models_page.rows_of(models_page.PAGE.read_text())[title]
        self.assertEqual(set(found), set(written))
        for name, cells in written.items():
            with self.subTest(name):
                self.assertEqual([cell == "yes" for cell in found[name][:3]],
                                 [cell == "yes" for cell in cells[:3]], found[name])

    def test_small_models(self):
        self.expect_rows("models")

    def test_graphs_of_the_zoo(self):
        self.expect_rows("zoo")


if __name__ == "__main__":
    sys.exit(unittest.main())
