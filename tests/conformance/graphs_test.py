"""Random graphs by NNSmith, another project's generator, through torch.export and Lathe."""

import collections
import importlib.util
import json
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


# What the seeds of the command line draw, one at a time.
DRAW = """
import json, sys
from lathe.conformance import random_graphs
for seed in sys.argv[1:]:
    for case in random_graphs.cases({"index": int(seed)}, "cpu"):
        arguments = [(str(x.dtype), x.tolist()) for x in case.args]
        print(json.dumps([seed, f"{case.module.net.ir} {arguments}"]))
"""


class GraphsTest(unittest.TestCase):
    def run_graphs(self, backend, count):
        """How often each verdict was given, and what was printed."""
        paths = (ROOT / "frontend/python", ROOT / "tests/conformance")
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder, "results.jsonl")
            process = subprocess.run(
                [sys.executable, "-m", "lathe.conformance", "--backend", backend, "--suite",
                 "graphs", "--seed", str(FIRST_SEED), "--graphs", str(count), "--jobs", "1",
                 "--import", "odd_backends", "--results", str(results)],
                capture_output=True, text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))})
            self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
            cases = table.read(journal.read(results)[0])[1]
        self.assertEqual(len(cases), count, process.stdout)
        return collections.Counter(case["verdict"] for case in cases), process.stdout

    def test_graphs_agree_with_eager(self):
        found, text = self.run_graphs("export", GRAPHS)
        self.assertEqual(found["wrong"] + found["crashed"] + found["timeout"], 0, text)
        traced = GRAPHS - found["untraced"]
        self.assertGreaterEqual(traced, GRAPHS * 0.9, text)
        self.assertGreaterEqual(found["agrees"], traced * SHARE, text)

    def test_a_seed_is_the_same_graph_in_each_process_and_order(self):
        seeds = [str(seed) for seed in range(FIRST_SEED, FIRST_SEED + 12)]
        drawn = []
        # Python orders sets of names by its own seed.
        for hash_seed, order in (("1", seeds), ("2", reversed(seeds))):
            process = subprocess.run(
                [sys.executable, "-c", DRAW, *order], capture_output=True, text=True,
                env=os.environ | {"PYTHONPATH": str(ROOT / "frontend/python"),
                                  "PYTHONHASHSEED": hash_seed})
            self.assertEqual(process.returncode, 0, process.stderr)
            drawn.append(dict(json.loads(line) for line in process.stdout.splitlines()))
        self.assertEqual([seed for seed in seeds if drawn[0][seed] != drawn[1][seed]], [])

    def test_another_answer_is_wrong_in_most_graphs(self):
        found, text = self.run_graphs("odd_wrong", 12)
        self.assertGreaterEqual(found["wrong"], 8, text)


if __name__ == "__main__":
    sys.exit(unittest.main())
