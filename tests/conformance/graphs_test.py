"""Random graphs by NNSmith, another project's generator, through torch.export and Lathe."""

import collections
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / "frontend/python"))

if importlib.util.find_spec("nnsmith") is None and "LATHE_EXPECTS_NNSMITH" not in os.environ:
    raise unittest.SkipTest("needs nnsmith (pip install nnsmith)")

from lathe.conformance import table  # noqa: E402
from lathe.sweep import journal  # noqa: E402

FIRST_SEED, GRAPHS = 1000, 60
SHARE = 0.97  # agrees


class GraphsTest(unittest.TestCase):
    def test_graphs_agree_with_eager(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder, "results.jsonl")
            process = subprocess.run(
                [sys.executable, "-m", "lathe.conformance", "--backend", "export", "--suite",
                 "graphs", "--seed", str(FIRST_SEED), "--graphs", str(GRAPHS), "--jobs", "1",
                 "--results", str(results)],
                capture_output=True, text=True,
                env=os.environ | {"PYTHONPATH": str(ROOT / "frontend/python")})
            self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
            cases = table.read(journal.read(results)[0])[1]
        found = collections.Counter(case["verdict"] for case in cases)
        self.assertEqual(len(cases), GRAPHS, process.stdout)
        self.assertEqual(found["wrong"] + found["crashed"] + found["timeout"], 0, process.stdout)
        traced = GRAPHS - found["untraced"]
        self.assertGreaterEqual(traced, GRAPHS * 0.9, process.stdout)
        self.assertGreaterEqual(found["agrees"], traced * SHARE, process.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
