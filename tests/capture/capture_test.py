"""lathe.capture: bundles hold what Dynamo saw, and nothing is left of one that failed."""

import json
import logging
import os
import pathlib
import re
import sys
import tempfile
import unittest
import zipfile

sys.path[:0] = ["frontend/python", "tests/capture"]

import torch  # noqa: E402

import captured_models as models  # noqa: E402
import lathe  # noqa: E402

SOURCE = pathlib.Path(models.__file__)


def lines_marked(mark):
    return [i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if mark in line]


def rows(path, name):
    return [json.loads(line) for line in (path / name).read_text().splitlines()]


class CaptureTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(0)

    def capture(self, model, args, kwargs=None, name="b", **options):
        if isinstance(model, torch.nn.Module):
            model.eval()
        with torch.no_grad():
            return lathe.capture(model, args, kwargs, path=self.folder / name,
                                 project="tests/capture", **options)

    def left(self):
        return sorted(p.name for p in self.folder.iterdir())

    def test_names_the_lines_of_three_breaks_and_two_recompiles(self):
        calls = [(torch.randn(4, 8),), (torch.randn(5, 8),), (torch.randn(5, 8).requires_grad_(),)]
        captured = self.capture(models.ThreeBreaks(), calls)
        found = {(row["file"], row["line"]) for row in captured.breaks}
        self.assertEqual(found, {(SOURCE.name, line) for line in lines_marked("# break:")})
        self.assertEqual(len(found), 3)
        for row in captured.breaks:
            self.assertIn("# break:", row["code"])
            self.assertEqual({frame["file"] for frame in row["stack"]}, {SOURCE.name})
        causes = [row for i, row in enumerate(captured.recompiles) if row["cause"] == i]
        self.assertEqual([row["call"] for row in causes], [1, 2])
        self.assertEqual([row["kind"] for row in causes], ["size", "requires_grad"])
        self.assertEqual(causes[0]["reason"],
                         "tensor 'x' size mismatch at index 0. expected 4, actual 5")
        sources = json.loads((captured.path / "sources.json").read_text())[SOURCE.name]
        for line in lines_marked("# break:"):
            self.assertIn("# break:", sources[str(line)])
            self.assertIn(str(line + 1), sources)

    def test_shows_one_cause_of_five_recompiles_one_of_them_resumed(self):
        x = torch.randn(4, 8)
        captured = self.capture(models.FiveFrames(), [(x,), (x.double(),)])
        self.assertEqual(len(captured.recompiles), 5)
        self.assertEqual({row["cause"] for row in captured.recompiles}, {0})
        self.assertIn("expected Float, actual Double", captured.recompiles[0]["reason"])
        resumed = [f for f in captured.manifest["frames"] if f["is_resumed"]]
        self.assertEqual([f["function"] for f in resumed], ["forward"])

    def test_two_changes_of_a_call_are_two_causes(self):
        x, y = torch.randn(4, 8), torch.randn(2, 8)
        captured = self.capture(models.Choosing(), [(x, y), (x, y, 4), (x, y, 4, False)])
        self.assertEqual([row["cause"] for row in captured.recompiles], [0, 1])
        self.assertEqual([row["reason"] for row in captured.recompiles], ["n == 3", "flag == True"])
        self.assertEqual([row["code"] for row in captured.recompiles], ["x = x * n", "if flag:"])
        for row in captured.recompiles:
            self.assertEqual(row["file"], SOURCE.name)
            self.assertIn(row["code"], SOURCE.read_text().splitlines()[row["line"] - 1])

    def test_dynamic_compiles_sizes_as_symbols_once(self):
        calls = [(torch.randn(n, 8),) for n in (4, 5, 6)]
        captured = self.capture(models.FiveFrames(), calls, dynamic=True)
        self.assertEqual(captured.recompiles, [])
        text = (captured.path / "guards/0_0.txt").read_text()
        self.assertIn("2 <= L['x'].size()[0]", text)
        graph = json.loads((captured.path / "graphs/0_0.json").read_text())
        self.assertTrue(graph["range_constraints"])

    def test_guards_are_the_text_that_pytorch_prints(self):
        def backend(gm, _):
            return gm.forward

        x = torch.randn(4, 8)
        captured = self.capture(models.first, (x,))
        torch._dynamo.reset()
        with torch.no_grad():
            torch.compile(models.first, backend=backend)(x)
        entries = torch._dynamo.eval_frame._debug_get_cache_entry_list(models.first.__code__)
        texts = [str(entry.guard_manager) for entry in entries]
        torch._dynamo.reset()
        # Numbers of objects and of builtins differ from one compilation to the next.
        plain = [re.sub(r"__\d+|\d{6,}", "N", text).strip() for text in
                 [(captured.path / "guards/0_0.txt").read_text(), *texts]]
        self.assertEqual(plain[0], plain[1])
        found = json.loads((captured.path / "guards/0_0.json").read_text())
        self.assertTrue(any(row["kind"] == "TENSOR_MATCH" and row["source"] == "L['x']"
                            and row["line"] == "return x.abs() + 1" for row in found))

    def test_graphs_are_what_torch_export_writes(self):
        captured = self.capture(models.Choosing(), (torch.randn(4, 8), torch.randn(2, 8)))
        graph = json.loads((captured.path / "graphs/0_0.json").read_text())
        targets = [node["target"] for node in graph["graph_module"]["graph"]["nodes"]]
        self.assertIn("torch.ops.aten.linear.default", targets)
        self.assertIn("torch.ops.aten.relu.default", targets)
        self.assertIn("def forward", (captured.path / "graphs/0_0.py").read_text())
        self.assertNotIn(str(SOURCE.parent), json.dumps(graph))

    def test_fullgraph_refuses_with_all_breaks_at_once(self):
        with self.assertRaises(lathe.capture.GraphBreaks) as raised:
            self.capture(models.ThreeBreaks(), (torch.randn(4, 8),), fullgraph=True)
        self.assertEqual([row["line"] for row in raised.exception.breaks],
                         lines_marked("# break:"))
        for line in lines_marked("# break:"):
            self.assertIn(f"{SOURCE.name}:{line}: ", str(raised.exception))
        self.assertEqual(self.left(), [])

    def test_fullgraph_passes_where_there_is_one_graph(self):
        self.capture(models.second, (torch.randn(3),), fullgraph=True)
        self.assertEqual(self.left(), ["b"])

    def test_an_exception_of_the_model_leaves_nothing_behind(self):
        log = logging.getLogger("torch.__trace")
        before = list(log.handlers), log.level
        with self.assertRaisesRegex(RuntimeError, "on purpose"):
            self.capture(models.failing, (torch.randn(3),))
        self.assertEqual(self.left(), [])
        self.assertEqual((list(log.handlers), log.level), before)

    def test_a_failed_write_keeps_the_bundle_that_was_there(self):
        self.capture(models.first, (torch.randn(3),))
        before = (self.folder / "b/manifest.json").read_bytes()
        for failing in ("fsync", "rename"):
            real = getattr(os, failing)

            def fail(*_, **__):
                raise OSError(28, "no space left on device")

            setattr(os, failing, fail)
            try:
                with self.assertRaises(OSError):
                    self.capture(models.second, (torch.randn(4),))
            finally:
                setattr(os, failing, real)
            self.assertEqual(self.left(), ["b"])
            self.assertEqual((self.folder / "b/manifest.json").read_bytes(), before)

    def test_replaces_a_bundle_and_nothing_else(self):
        self.capture(models.first, (torch.randn(3),))
        self.capture(models.second, (torch.randn(3),))
        manifest = json.loads((self.folder / "b/manifest.json").read_text())
        self.assertEqual(manifest["model"], "second")
        (self.folder / "mine").mkdir()
        (self.folder / "mine/thesis.txt").write_text("years of work")
        with self.assertRaisesRegex(lathe.LatheError, "is no bundle"):
            self.capture(models.first, (torch.randn(3),), name="mine")
        self.assertEqual(self.left(), ["b", "mine"])

    def test_a_zip_has_the_same_files(self):
        torch.manual_seed(0)
        x = torch.randn(3)
        self.capture(models.first, (x,))
        self.capture(models.first, (x,), name="b.zip")
        names = sorted(p.relative_to(self.folder / "b").as_posix()
                       for p in (self.folder / "b").rglob("*") if p.is_file())
        with zipfile.ZipFile(self.folder / "b.zip") as archive:
            self.assertEqual(sorted(archive.namelist()), names)
            self.assertIsNone(archive.testzip())

    def test_refuses_wrong_arguments_before_the_model_runs(self):
        ran = []

        def model(x):
            ran.append(x)

        x = torch.zeros(2)
        for args, options, words in [
            (x, {}, "tuple, got Tensor"),
            ([x], {}, "call|tuple, got Tensor"),
            ([], {}, "empty"),
            ((x,), {"dynamic": "yes"}, "'dynamic' is True, False or None, got 'yes'"),
            ((x,), {"kwargs": [{}, {}]}, "2 calls and 'args' has 1"),
            ((x,), {"kwargs": 3}, "dict, got int"),
            ((x, x), {}, "call 0 does not fit the model: too many positional arguments"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(lathe.LatheError, words):
                self.capture(model, args, **options)
        with self.assertRaisesRegex(lathe.LatheError, "module or a function, got int"):
            self.capture(3, (x,))
        self.assertEqual((ran, self.left()), ([], []))

    def test_an_exported_program_is_one_graph(self):
        program = torch.export.export(models.Choosing().eval(),
                                      (torch.randn(4, 8), torch.randn(2, 8)))
        captured = self.capture(program, (torch.randn(4, 8), torch.randn(2, 8)))
        self.assertEqual([row["graph"]["id"] for row in captured.manifest["compiles"]], ["0_0"])
        self.assertEqual(captured.manifest["origin"], "torch.export")
        graph = json.loads((captured.path / "graphs/0_0.json").read_text())
        self.assertIn("graph_module", graph)
        self.assertEqual(rows(captured.path, "breaks.jsonl"), [])

    def test_a_traced_module_is_one_graph_of_symbolic_sizes(self):
        traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(8, 4)))
        captured = self.capture(traced, (torch.randn(3, 8),), dynamic=True)
        self.assertEqual(captured.manifest["origin"], "torch.fx")
        graph = json.loads((captured.path / "graphs/0_0.json").read_text())
        self.assertTrue(graph["range_constraints"])

    def test_explain_counts_what_torch_counts(self):
        model, x = models.ThreeBreaks().eval(), torch.randn(4, 8)
        theirs = torch._dynamo.explain(model)(x)
        ours = lathe.explain(model, (x,))
        self.assertEqual(ours.graph_count, theirs.graph_count)
        self.assertEqual(ours.graph_break_count, theirs.graph_break_count)
        # y.sum() and z.sin() are methods, which torch does not count.
        self.assertEqual(ours.op_count, theirs.op_count + 2)
        for line in lines_marked("# break:"):
            self.assertIn(f"{SOURCE.name}:{line}: break: ", str(ours))
        self.assertEqual(self.left(), [])


if __name__ == "__main__":
    unittest.main()
