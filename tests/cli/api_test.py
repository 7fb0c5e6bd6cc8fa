"""lathe.load on NumPy arrays, through the C ABI."""

import dataclasses
import os
import pathlib
import sys
import tempfile
import unittest

os.environ["LATHE_LIBRARY"] = str(pathlib.Path("frontend/api/liblathe.so").resolve())
os.environ["LATHE_EXTENSION"] = str(pathlib.Path("frontend/python/_call.abi3.so").resolve())
sys.path.insert(0, "frontend/python")

try:
    import numpy as np

    import lathe
except ImportError as error:
    raise unittest.SkipTest(f"needs numpy: {error}") from None

from lathe import _pytree  # noqa: E402

GRAPHS = pathlib.Path("experiments/graphs")
FIXTURES = pathlib.Path("tests/fixtures")

TOTAL = """dim s0 in [1, 64]
func @main(%x: f32[s0]) -> f32[] {
  %t = constant() {name = "t", dtype = f32, shape = []}
  %s = sum(%x) {dim = [0]}
  %u = add(%t, %s)
  return %u
  mutates "t" = %u
}
"""
SCALE = """dim s0 in [1, 64]
func @main(%x: f32[s0, 3], %y: f32[3]) -> f32[s0, 3] {
  %z = mul(%x, %y)
  return %z
}
"""


def arguments(model, npz):
    """(args, kwargs) of a fixture: its tensors, and the constants it was exported with."""
    tensors = iter([array for _, array in sorted(np.load(npz).items(), key=lambda x: int(x[0]))])
    values = []
    for leaf in model.signature["inputs"]:
        if "tensor" in leaf:
            values.append(next(tensors))
        else:
            values.append(model.info["dims"].get(leaf.get("size"), leaf.get("constant")))
    return _pytree.unflatten(iter(values), model.in_spec)


def leaves(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [x for item in tree for x in leaves(item)] if isinstance(tree, (list, tuple)) else [tree]


def as_floats(array):
    """Halves of bf16 come as their words."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64) if array.dtype != bool else array.astype(np.uint8)


class LoadTest(unittest.TestCase):
    def text(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "m.lathe")
        path.write_text(text)
        return path

    def test_runs_an_exported_graph(self):
        model = lathe.load(GRAPHS / "small_ffnn.json.gz", weights="random:0", threads=1)
        y = model(np.ones((65536, 32), np.float32))
        self.assertEqual(y.shape, (65536, 10))
        np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-5)
        self.assertGreater(model.last_run_ms, 0)
        self.assertEqual(model.info["threads"], 1)

    def test_fixtures_take_nested_arguments_and_give_pytorchs_results(self):
        paths = sorted(FIXTURES.glob("*.pt2"))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path.name):
                model = lathe.load(path, threads=1)
                args, kwargs = arguments(model, path.with_suffix(".inputs.npz"))
                found = [x for x in leaves(model(*args, **kwargs)) if hasattr(x, "shape")]
                expected = np.load(path.with_suffix(".outputs.npz"))
                self.assertEqual(len(found), len(expected.files))
                for i, value in enumerate(found):
                    self.assertEqual(value.dtype, expected[str(i)].dtype)
                    half = value.dtype in (np.uint16, np.float16)
                    np.testing.assert_allclose(
                        as_floats(value),
                        as_floats(expected[str(i)]),
                        rtol=2e-2 if half else 1e-4,
                        atol=2e-2 if half else 1e-4,
                    )

    def test_a_dataclass_is_taken_as_it_was_exported(self):
        @dataclasses.dataclass
        class Pair:
            left: object = None
            middle: object = None
            right: object = None

        one = np.ones(3, np.float32)
        table = {"scale": 2 * one, "shift": 3 * one}
        model = lathe.load(FIXTURES / "dataclasses.pt2", threads=1)
        for pair in (Pair(left=one, right=one), {"left": one, "right": one}):
            result = model(pair, table)
            np.testing.assert_array_equal(result["left"], 3 * one)
            np.testing.assert_array_equal(result["middle"], -2 * one)
            self.assertIsNone(result["right"])
        with self.assertRaisesRegex(lathe.LatheError, "got Pair without 'right'"):
            model(Pair(left=one), table)
        with self.assertRaisesRegex(lathe.LatheError, "'middle' was exported as None"):
            model(Pair(one, one, one), table)
        with self.assertRaisesRegex(lathe.LatheError, "'Pair' with the fields .*got ndarray"):
            model(one, table)

    def test_mutated_buffers_keep_their_contents(self):
        path = FIXTURES / "mutated_buffers.pt2"
        model = lathe.load(path, threads=1)
        args, kwargs = arguments(model, path.with_suffix(".inputs.npz"))
        first = [np.copy(x) for x in leaves(model(*args, **kwargs))]
        second = leaves(model(*args, **kwargs))
        pairs = list(zip(first, second, strict=True))
        self.assertTrue(any(not np.array_equal(a, b) for a, b in pairs))

    def test_mutated_buffers_are_those_of_all_sizes(self):
        model = lathe.load(self.text(TOTAL), threads=1, weights="random:0", dims={"s0": 2})
        start = float(model(np.zeros(2, np.float32)))
        for size, total in ((2, 2), (3, 5), (2, 7), (30, 37), (3, 40)):
            found = float(model(np.ones(size, np.float32)))
            self.assertAlmostEqual(found - start, total, places=4)

    def test_mutated_inputs_are_changed_in_place(self):
        path = FIXTURES / "mutated_inputs.pt2"
        model = lathe.load(path, threads=1)
        args, kwargs = arguments(model, path.with_suffix(".inputs.npz"))
        model(*args, **kwargs)
        mutated = np.load(path.with_suffix(".mutated.npz"))
        values = {i["name"]: a for i, a in zip(model.info["inputs"], args, strict=True)}
        self.assertTrue(mutated.files)
        for name in mutated.files:
            np.testing.assert_allclose(values[name], mutated[name], rtol=1e-5)

    def test_compiles_for_each_size(self):
        model = lathe.load(self.text(SCALE), dims={"s0": 2}, dynamic=False, recompile_limit=2)
        for rows in (2, 5, 2, 7, 2, 5):
            x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
            y = np.array([1, 2, 3], np.float32)
            np.testing.assert_array_equal(model(x, y), x * y)
        self.assertEqual([a["sizes"] for a in model.artifacts], [{"s0": 2}, {"s0": 5}])
        reason = model.artifacts[1]["reason"]
        self.assertRegex(reason, r"artifact 0 needs s0 == 2, got s0 \(x.size\(0\)\) = 5")
        self.assertRegex(reason, "every size is a number; it replaces artifact 1, which served")

    def test_sizes_that_change_become_symbols(self):
        model = lathe.load(self.text(SCALE), dims={"s0": 2})
        for rows in (2, 2, 5, 3, 64, 2):
            x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
            y = np.array([1, 2, 3], np.float32)
            np.testing.assert_array_equal(model(x, y), x * y)
        found = [(a["sizes"]["s0"], a["calls"]) for a in model.artifacts]
        self.assertEqual([size for size, _ in found], [2, None])
        self.assertTrue(all(calls > 0 for _, calls in found))
        self.assertRegex(model.artifacts[1]["reason"], "needs s0 == 2.*stays a symbol from now on")

    def test_hinted_sizes_have_a_program_of_their_own(self):
        hints = ["s0 == 8", "s0 % 4 == 0"]
        model = lathe.load(self.text(SCALE), dims={"s0": 2}, dynamic=True, specialize_on=hints)
        for rows in (2, 8, 12, 16, 3):
            x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
            y = np.array([1, 2, 3], np.float32)
            np.testing.assert_array_equal(model(x, y), x * y)
        found = [(a["sizes"]["s0"], a["hint"]) for a in model.artifacts]
        self.assertEqual(found, [(None, ""), (8, "s0 == 8"), (None, "s0 % 4 == 0")])
        self.assertIn("s0 % 4 == 0", model.artifacts[2]["guards"])
        with self.assertRaisesRegex(lathe.LatheError, "mark_dynamic: no symbolic dim named 's1'"):
            lathe.load(self.text(SCALE), dims={"s0": 2}, mark_dynamic="s1")
        wrong_hint = "specialize_on: 's1 == 2': no symbolic dim named 's1'"
        with self.assertRaisesRegex(lathe.LatheError, wrong_hint):
            lathe.load(self.text(SCALE), dims={"s0": 2}, specialize_on="s1 == 2")

    def test_one_dynamic_program_serves_each_size(self):
        model = lathe.load(self.text(SCALE), dims={"s0": 2}, dynamic=True)
        for rows in (2, 5, 1, 64, 2):
            x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
            y = np.array([1, 2, 3], np.float32)
            np.testing.assert_array_equal(model(x, y), x * y)
        self.assertEqual([a["sizes"] for a in model.artifacts], [{"s0": None}])
        self.assertEqual(model.artifacts[0]["reason"][:23], "no program was there; e")
        with self.assertRaisesRegex(lathe.LatheError, "64"):
            model(np.zeros((65, 3), np.float32), np.ones(3, np.float32))
        model = lathe.load(self.text(TOTAL), weights="random:0", dims={"s0": 2}, dynamic=True)
        start = float(model(np.zeros(2, np.float32)))
        for size, total in ((2, 2), (3, 5), (30, 35), (2, 37)):
            found = float(model(np.ones(size, np.float32)))
            self.assertAlmostEqual(found - start, total, places=4)

    def test_a_transposed_array_is_read_as_it_means(self):
        model = lathe.load(self.text(SCALE), dims={"s0": 2})
        x = np.arange(6, dtype=np.float32).reshape(3, 2).T
        np.testing.assert_array_equal(model(x, np.ones(3, np.float32)), x)

    def test_wrong_arguments_say_what_was_expected(self):
        model = lathe.load(self.text(SCALE), dims={"s0": 2})
        expected = r"input 0 \('x'\) is float32\[2, 3\], got float64"
        with self.assertRaisesRegex(lathe.LatheError, expected):
            model(np.ones((2, 3)), np.ones(3, np.float32))
        with self.assertRaisesRegex(lathe.LatheError, "expected 2 tensors, got 1"):
            model(np.ones((2, 3), np.float32))
        expected = r"input 'x' must have 1 to 64 in dim 0 \(s0\), got 65"
        with self.assertRaisesRegex(lathe.LatheError, expected):
            model(np.ones((65, 3), np.float32), np.ones(3, np.float32))

    def test_wrong_files_and_options(self):
        with self.assertRaisesRegex(lathe.LatheError, "missing-file"):
            lathe.load("nowhere.pt2")
        with self.assertRaisesRegex(lathe.LatheError, "missing-weight"):
            lathe.load(GRAPHS / "small_ffnn.json.gz")
        with self.assertRaisesRegex(lathe.LatheError, "unknown-pass"):
            lathe.load(self.text(SCALE), passes="nothing", dims={"s0": 2})
        with self.assertRaisesRegex(lathe.LatheError, "'strict' is not there on target cuda"):
            lathe.load(self.text(SCALE), target="cuda", numerics="strict", dims={"s0": 2})
        with self.assertRaisesRegex(lathe.LatheError, "unknown-key.*did you mean 'threads'"):
            lathe.load(self.text(SCALE), thread=1, dims={"s0": 2})
        with self.assertRaisesRegex(lathe.LatheError, "one of cpu, cuda, wasm, got 'gpu'"):
            lathe.load(self.text(SCALE), target="gpu", dims={"s0": 2})


if __name__ == "__main__":
    unittest.main()
