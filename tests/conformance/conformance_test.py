"""python -m lathe.conformance: every verdict there is, runs that were killed, and Lathe itself."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / "frontend/python"))

try:
    import expecttest  # noqa: F401  PyTorch's databases import it
    import torch  # noqa: F401
except ImportError as error:
    raise unittest.SkipTest(f"needs torch and expecttest: {error}") from None

from lathe.conformance import case, table  # noqa: E402
from lathe.sweep import journal  # noqa: E402

FOLDERS = (ROOT / "frontend/python", ROOT / "tests/conformance")


class Run:
    def __init__(self, case):
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name, "results.jsonl")

    def start(self, backend, *flags):
        paths = [*map(str, FOLDERS), *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            [sys.executable, "-m", "lathe.conformance", "--backend", backend, "--jobs", "1",
             "--import", "odd_backends", "--results", str(self.results), *flags],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)})

    def finish(self, backend, *flags):
        """(exit code, what was printed, verdicts)"""
        process = self.start(backend, *flags)
        text, _ = process.communicate()
        return process.returncode, text, self.verdicts()

    def verdicts(self):
        _, cases = table.read(journal.read(self.results)[0])
        return {(c["name"], c["case"]): c["verdict"] for c in cases}


class Noise(torch.nn.Module):
    """What moves by one with the last bit of 300.0, and digits that f32 does not have."""

    def forward(self, x):
        return x.long(), (x + 1e8) - 1e8


class CompareTest(unittest.TestCase):
    def words(self, *found):
        x = torch.tensor([3.5, 300.0])
        noisy = case.Case("", Noise(), (x,), bounds={"rtol": 1e-2, "atol": 1e-3}, is_random=True)
        given = (x,), {}
        return case.compare(noisy, (found, *given), (Noise()(x), *given), given, False)

    def test_noise_of_a_random_graph_is_not_held_against_it(self):
        self.assertIsNone(self.words(torch.tensor([3, 299]), torch.tensor([3.5, 300.0])))

    def test_an_integer_that_does_not_move_is(self):
        self.assertIn("result 0", self.words(torch.tensor([4, 300]), torch.tensor([3.5, 300.0])))

    def test_digits_that_no_rounding_explains_are(self):
        self.assertIn("result 1", self.words(torch.tensor([3, 299]), torch.tensor([90.5, 400.0])))


RANK_0 = ("--suite", "behaviour", "--only", "^rank0")


class ConformanceTest(unittest.TestCase):
    def verdicts(self, backend, *flags):
        code, text, verdicts = Run(self).finish(backend, *flags)
        self.assertEqual(code, 0, text)
        self.assertTrue(verdicts, text)
        return set(verdicts.values())

    def test_a_backend_that_is_right_agrees(self):
        found = self.verdicts("odd_right", "--suite", "ops", "--only", "^sin$")
        self.assertEqual(found, {"agrees"})

    def test_another_answer_is_wrong(self):
        self.assertEqual(self.verdicts("odd_wrong", *RANK_0), {"wrong"})

    def test_an_error_while_compiling_is_a_refusal(self):
        self.assertEqual(self.verdicts("odd_refuses", *RANK_0), {"refused"})

    def test_an_error_of_a_run_is_wrong(self):
        self.assertEqual(self.verdicts("odd_raises", *RANK_0), {"wrong"})

    def test_a_crash_costs_one_case_each(self):
        self.assertEqual(self.verdicts("odd_crashes", "--suite", "behaviour", "--only", "^empty"),
                         {"crashed"})

    def test_what_hangs_is_ended(self):
        self.assertEqual(self.verdicts("odd_hangs", *RANK_0, "--seconds", "3"), {"timeout"})

    def test_error_inputs_agree_where_a_backend_or_pytorch_itself_refuses_them(self):
        flags = ("--suite", "errors", "--only", "^(gather|__radd__)$")
        code, text, verdicts = Run(self).finish("odd_right", *flags)
        self.assertEqual(code, 0, text)
        of = {name: {v for (n, _), v in verdicts.items() if n == name} for name, _ in verdicts}
        self.assertIn("agrees", of["gather"])
        self.assertNotIn("wrong", of["gather"])
        self.assertEqual(of["__radd__"], {"untraced"})  # it gives torch.compile a graph

    def test_a_run_that_was_killed_goes_on(self):
        flags = ("--suite", "behaviour", "--only", "^(empty|aliases|strides)")
        calm, stormy = Run(self), Run(self)
        _, text, wanted = calm.finish("odd_right", *flags)
        process = stormy.start("odd_right", *flags)
        while not (stormy.results.exists() and stormy.verdicts()):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        begun = len(stormy.verdicts())
        self.assertLess(begun, len(wanted), text)
        self.assertEqual(stormy.finish("odd_right", *flags)[2], wanted)

    def test_lathe_in_both_ways(self):
        errors = "complex|index_add|index_copy|masked_scatter|uniform"
        for backend in ("lathe", "export"):
            code, text, found = Run(self).finish(
                backend, "--suite", "modules", "--suite", "errors", "--only",
                rf"nn\.(Linear|GELU)$|^({errors})$")
            self.assertEqual(code, 0, text)
            self.assertLessEqual(set(found.values()), {"agrees", "untraced"}, text)
            for name in ("nn.Linear", "nn.GELU", "index_add", "masked_scatter"):
                self.assertEqual({v for (n, _), v in found.items() if n == name}, {"agrees"}, name)

    def test_a_suite_without_such_entries_is_an_error(self):
        code, text, _ = Run(self).finish("odd_right", "--suite", "behaviour", "--only", "no such")
        self.assertEqual(code, 2)
        self.assertIn("no entry has this name", text)


if __name__ == "__main__":
    sys.exit(unittest.main())
