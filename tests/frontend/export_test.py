"""lathe.export: stock archives that name no machine, with arrays to check them by."""

import pathlib
import sys
import tempfile
import unittest
import zipfile

sys.path[:0] = ["frontend/python", "tests/fixtures"]

try:
    import numpy as np
    import torch

    import lathe
    import models
except ImportError as error:
    raise unittest.SkipTest(f"needs torch and numpy: {error}") from None


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def export(self, model, args, kwargs=None, **options):
        torch.manual_seed(0)
        return lathe.export(model.eval(), args, kwargs, path=self.folder / "new" / "m.pt2",
                            project="tests/fixtures", **options)

    def test_writes_model_inputs_and_outputs(self):
        model, x = models.Ffnn(), torch.randn(3, 24)
        files = self.export(model, (x,))
        with np.load(files.inputs) as inputs, np.load(files.outputs) as outputs:
            np.testing.assert_array_equal(inputs["0"], x.numpy())
            np.testing.assert_allclose(outputs["0"], model(x).detach().numpy(), rtol=1e-5)
        self.assertIsNone(files.mutated)
        np.testing.assert_allclose(torch.export.load(files.model).module()(x).detach(),
                                   model(x).detach(), rtol=1e-5)

    def test_names_no_machine(self):
        for core in (False, True):
            files = self.export(models.BertTiny(), (torch.zeros(1, 3, dtype=torch.int64),) * 2,
                                core=core)
            with zipfile.ZipFile(files.model) as archive:
                text = archive.read("m/models/model.json").decode()
            self.assertIn(r'File \"models.py\", line', text)
            self.assertIn(r'File \"torch/nn/modules/', text)
            for part in ("site-packages", str(pathlib.Path.home()), str(pathlib.Path.cwd()),
                         sys.prefix):
                self.assertNotIn(part, text)

    def test_aligns_what_is_mapped(self):
        files = self.export(models.Ffnn(), (torch.randn(3, 24),))
        with zipfile.ZipFile(files.model) as archive:
            for entry in archive.infolist():
                begin = entry.header_offset + 30 + len(entry.filename) + len(entry.extra)
                self.assertEqual(begin % 64, 0, entry.filename)

    def test_records_what_the_call_changes(self):
        x, y = torch.ones(2, 3), torch.full((2, 3), 2.0)
        files = self.export(models.MutatedInputs(), (x, y))
        with np.load(files.inputs) as inputs, np.load(files.mutated) as mutated:
            np.testing.assert_array_equal(inputs["0"], np.ones((2, 3)))
            np.testing.assert_array_equal(mutated["x"], np.full((2, 3), 4.0))
            np.testing.assert_array_equal(mutated["y"][0], np.full(3, 4.0))
        np.testing.assert_array_equal(x, np.ones((2, 3)))

    def test_keeps_the_order_of_the_call(self):
        class Pair(torch.nn.Module):
            def forward(self, a, *, b, c):
                return a + b * c

        args = (torch.ones(1),), {"c": torch.full((1,), 3.0), "b": torch.full((1,), 2.0)}
        files = self.export(Pair(), *args)
        with np.load(files.inputs) as inputs:
            self.assertEqual([float(inputs[str(i)][0]) for i in range(3)], [1, 3, 2])

    def test_wants_a_pt2(self):
        with self.assertRaisesRegex(ValueError, "must end in .pt2"):
            lathe.export(models.Ffnn(), (torch.randn(3, 24),), path="m.onnx")


if __name__ == "__main__":
    unittest.main()
