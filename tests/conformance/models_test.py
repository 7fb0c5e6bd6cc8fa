"""Every row of MODELS.md: what it says imports, compiles and agrees does.

--test_env=MODELS=PATTERN looks at some models alone.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / "frontend/python"))

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("needs torch")

from lathe.conformance import models_page
from lathe.sweep import journal

MODELS = os.environ.get("MODELS", "")


class ModelsTest(unittest.TestCase):
    def expect_rows(self, suite):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder, "results.jsonl")
            process = subprocess.run(
                [sys.executable, "-m", "lathe.conformance", "--backend", "export", "--suite", suite,
                 "--option", "threads=1", "--only", MODELS, "--results", str(results)],
                capture_output=True, text=True,
                env=os.environ | {"PYTHONPATH": str(ROOT / "frontend/python")})
            self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
            page = models_page.page(journal.read(results)[0])
        title = models_page.SUITES[suite]
        found = models_page.rows_of(page)[title]
        written = models_page.rows_of(models_page.PAGE.read_text())[title]
        written = {name: cells for name, cells in written.items() if re.search(MODELS, name)}
        self.assertEqual(set(found), set(written))
        for name, cells in written.items():
            with self.subTest(name):
                self.assertEqual([cell == "yes" for cell in found[name][:3]],
                                 [cell == "yes" for cell in cells[:3]], found[name])

    def test_small_models(self):
        for package in ("timm", "torchvision", "transformers"):
            if importlib.util.find_spec(package) is None:
                self.assertNotIn("LATHE_EXPECTS_MODELS", os.environ, f"{package} is not there")
                self.skipTest(f"needs {package}, which ./lathe test --all installs")
        self.expect_rows("models")

    def test_graphs_of_the_zoo(self):
        self.expect_rows("zoo")


if __name__ == "__main__":
    sys.exit(unittest.main())
