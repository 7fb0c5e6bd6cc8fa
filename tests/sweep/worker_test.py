"""Jobs in their own processes: what is measured, and what becomes of models that misbehave."""

import os
import pathlib
import signal
import time
import unittest

import sweeps
from lathe.sweep import inspection

os.environ["LATHE_LIBRARY"] = str(pathlib.Path("frontend/api/liblathe.so").resolve())
TORCH = "import torch\n\n"
MODELS = {
    "linear": "def model(batch):\n    return torch.nn.Linear(8, 8), (torch.randn(batch, 8),)\n",
    "two_graphs": """class Broken(torch.nn.Module):
    def forward(self, x):
        x = torch.relu(x)
        torch._dynamo.graph_break()
        return x + 1


def model(batch):
    return Broken(), (torch.randn(batch, 8),)
""",
    "wrong": """class Wrong(torch.nn.Module):
    def forward(self, x):
        return x.flip(0) if torch.compiler.is_compiling() else x


def model(batch):
    return Wrong(), (torch.arange(8.0),)
""",
    "failing": """class Failing(torch.nn.Module):
    def forward(self, x):
        return x @ x.T @ x.T


def model(batch):
    return Failing(), (torch.randn(batch, 8),)
""",
    "large": """class Large(torch.nn.Module):
    def forward(self, x):
        return x + torch.zeros(40 << 30, dtype=torch.uint8)


def model(batch):
    return Large(), (torch.randn(1),)
""",
    "slow": """import time


class Slow(torch.nn.Module):
    def forward(self, x):
        time.sleep(600)


def model(batch):
    return Slow(), (torch.randn(1),)
""",
    "odd": "def model(batch):\n    return 7\n",
}


class WorkerTest(unittest.TestCase):
    def rows(self, names, **spec):
        """The rows of a sweep over models of this file, by their names."""
        folder = sweeps.SweepFolder(self, names, **spec)
        for name, text in MODELS.items():
            (folder.folder / f"{name}.py").write_text(TORCH + text)
        self.code, self.out, self.errors = folder.run()
        found = {}
        for row in folder.rows():
            found.setdefault(row["settings"]["model"][5:-9], []).append(row)
        self.assertEqual(set(found), set(names), self.errors)
        return found

    def test_samples_are_pairs_and_the_first_call_is_taken_cold_and_warm(self):
        rows = self.rows(["linear"], backends=["aot_eager"], measure={"samples": 6, "min_ms": 1},
                         against=["eager"])
        (row,) = rows["linear"]
        self.assertEqual((self.code, row["status"], row["reason"]), (0, "pass", None))
        self.assertEqual({k: len(v) for k, v in row["samples"].items()},
                         {"candidate": 6, "eager": 6})
        self.assertTrue(all(ms > 0 for v in row["samples"].values() for ms in v))
        for key in ("first_call_ms", "warm_first_call_ms", "compile_ms"):
            self.assertGreater(row[key], 0, key)
        self.assertGreater(row["first_call_ms"], row["compile_ms"])
        self.assertEqual((row["graphs"], row["graph_breaks"]), (1, 0))
        self.assertEqual(row["accuracy"]["rule"], "close")
        self.assertGreater(row["peak_memory_bytes"], 0)
        self.assertGreater(row["against_peak_memory_bytes"]["eager"], 0)

    def test_kernels_of_lathe_are_told_with_their_times(self):
        rows = self.rows(["two_graphs"], backends=["lathe"])
        (row,) = rows["two_graphs"]
        self.assertEqual((row["status"], row["graphs"]), ("pass", 2), row["reason"])
        self.assertEqual([k["line"].split(":")[0] for k in row["kernels"]], ["two_graphs.py"] * 2)
        for kernel in row["kernels"]:
            self.assertGreater(kernel["ms"], 0)
            self.assertEqual((kernel["kind"], kernel["count"]), ("loops", 1))

    def test_kernels_that_are_alike_are_one_row_and_the_shortest_go_together(self):
        def launch(label, ms):
            return {"label": label, "kind": "loops", "ops": "f", "line": "m.py:1", "ms": ms,
                    "predicted_ms": None if label == "odd" else ms / 2}

        rows = inspection.longest([launch("a", 2.0), launch("odd", 1.0), launch("a", 4.0)])
        self.assertEqual([(r["label"], r["count"], r["ms"], r["predicted_ms"]) for r in rows],
                         [("a", 2, 6.0, 3.0), ("odd", 1, 1.0, None)])
        many = [launch(f"k{i}", float(i)) for i in range(1, inspection.MAX_KERNELS + 9)]
        rows = inspection.longest(many)
        self.assertEqual(len(rows), inspection.MAX_KERNELS + 1)
        self.assertEqual((rows[-1]["label"], rows[-1]["count"], rows[-1]["ms"]),
                         ("8 others", 8, sum(range(1, 9))))

    def test_graph_breaks_are_counted_and_fullgraph_refuses_them(self):
        rows = self.rows(["two_graphs"], backends=["aot_eager"], fullgraph=[False, True])
        broken, refused = rows["two_graphs"]
        self.assertEqual((broken["status"], broken["graphs"], broken["graph_breaks"]),
                         ("pass", 2, 1))
        self.assertEqual(refused["status"], "refused")
        self.assertIn("graph_break", refused["reason"])
        self.assertEqual(broken["samples"], {})

    def test_each_way_to_fail_has_its_status_and_reason(self):
        rows = self.rows(["failing", "large", "slow", "odd", "wrong"], backends=["aot_eager"],
                         limits={"seconds": 40, "memory_gib": 1})
        said = {name: (row["status"], row["reason"]) for name, (row,) in rows.items()}
        self.assertEqual(self.code, 1)
        self.assertEqual(said["failing"][0], "fail_to_run")
        self.assertRegex(said["failing"][1], "^eager itself fails: RuntimeError: mat1 and mat2")
        self.assertEqual(said["large"][0], "out_of_memory")
        self.assertIn("limits.memory_gib is 1", said["large"][1])
        self.assertEqual(said["slow"], ("timeout", "not done after 40 s (limits.seconds)"))
        self.assertEqual(said["odd"], ("fail_to_load", "TypeError: model returned int, expected "
                                       "(module, args)"))
        self.assertEqual(said["wrong"][0], "fail_accuracy")
        self.assertRegex(said["wrong"][1], "^output 0: error .* against float64, allowed")
        self.assertIn("mat1 and mat2", rows["failing"][0]["details"])

    def test_a_backend_that_is_not_there_is_a_row_with_its_reason(self):
        rows = self.rows(["linear"], backends=["openvino", "zentorch"])
        for row in rows["linear"]:
            self.assertEqual(row["status"], "refused")
            self.assertIn(f"needs pip install {row['settings']['backend']}", row["reason"])
        self.assertEqual(self.code, 0)

    def test_a_hung_job_is_ended_with_all_that_it_started(self):
        folder = sweeps.SweepFolder(self, ["hangs"], limits={"seconds": 2})
        process = folder.start()
        while not (workers := sweeps.children(process.pid)):
            time.sleep(0.02)
        code, _ = process.wait(60), process.communicate()
        self.assertEqual(code, 1)
        self.assertEqual([row["status"] for row in folder.rows()], ["timeout"])
        time.sleep(0.2)
        self.assertEqual(sweeps.group(workers[0]), [])

    def test_a_worker_that_is_killed_begins_again_as_often_as_it_may(self):
        folder = sweeps.SweepFolder(self, ["hangs"], limits={"attempts": 2})
        process = folder.start()
        for _ in range(2):
            while not (workers := sweeps.children(process.pid)):
                time.sleep(0.02)
            time.sleep(0.3)
            os.kill(workers[0], signal.SIGKILL)
            while sweeps.is_running(workers[0]) or workers[0] in sweeps.children(process.pid):
                time.sleep(0.02)
        process.communicate(timeout=60)
        (row,) = folder.rows()
        self.assertEqual((row["status"], row["attempts"]), ("crashed", 2))
        self.assertIn("killed by SIGKILL, 2 times", row["reason"])


if __name__ == "__main__":
    unittest.main()
