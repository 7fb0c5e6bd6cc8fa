"""Packages for WebAssembly: a loader and a module, in Node with nothing of Lathe beside them."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

os.environ["LATHE_LIBRARY"] = str(pathlib.Path("frontend/api/liblathe.so").resolve())
sys.path.insert(0, "frontend/python")
sys.path.insert(0, "tests/package")

import numpy as np
from graphs import CONSTANT, IN_PLACE, NOTHING, PAIRS, ROWS, TOTAL, bytes_of, graph, model_inputs

import lathe

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
PROGRAM = pathlib.Path("tests/package/run_model.mjs").resolve()
NODE = shutil.which("node")
# The same bits on "cpu", which says here what is right.
STRICT = {"weights": "random:1", "numerics": "strict", "threads": 1}


class WasmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert NODE, "no Node 18 or newer on PATH; ./lathe test installs it"

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def package(self, model, *flags, name="p", isa="simd128"):
        """The loader of a package."""
        folder = self.folder / name
        command = [LATHE, "compile", model, "--target=wasm", f"--isa={isa}", "--emit=package",
                   "--weights=random:1", "--numerics=strict", "-o", folder, *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return next(folder.glob("*.mjs"))

    def run_model(self, loader, inputs, sizes=None, runs=1):
        """(exit code, bytes of outputs, words)."""
        done = subprocess.run(
            [NODE, PROGRAM, loader, str(runs), json.dumps(sizes or {})],
            input=b"".join(a.tobytes() for a in inputs), capture_output=True, env={},
            cwd=self.folder,
        )
        return done.returncode, done.stdout, done.stderr.decode()

    def text(self, name, text):
        path = self.folder / f"{name}.lathe"
        path.write_text(text)
        return path

    def test_gives_the_bits_that_the_library_gives(self):
        for name in ("small_ffnn", "small_cnn", "attention_block"):
            with self.subTest(name):
                loader = self.package(graph(name), name=name)
                model = lathe.load(graph(name), **STRICT)
                inputs = model_inputs(model)
                self.assertEqual(
                    self.run_model(loader, inputs), (0, bytes_of(model(*inputs)), "")
                )

    def test_one_package_serves_every_size(self):
        loader = self.package(graph("small_encoder"), "--dynamic=true")
        path = graph("small_encoder")
        for size in (1, 2, 3, 17, 64, 127, 512):
            with self.subTest(size):
                model = lathe.load(path, dynamic=True, dims={"s27": size}, **STRICT)
                inputs = model_inputs(model)
                self.assertEqual(
                    self.run_model(loader, inputs, {"s27": size}), (0, bytes_of(model(*inputs)), "")
                )

    def test_sizes_that_the_model_is_not_for_are_refused(self):
        loader = self.package(graph("small_encoder"), "--dynamic=true")
        for sizes, words in (
            ({"s27": 513}, "'s27' is 1 to 512, got 513"),
            ({"s27": 0}, "'s27' is 1 to 512, got 0"),
            ({}, "no size of 's27' given"),
            ({"s27": "4"}, "no size of 's27' given"),
        ):
            code, outputs, said = self.run_model(loader, [], sizes)
            self.assertEqual((code, outputs), (1, b""))
            self.assertIn(words, said)

    def test_a_guard_refuses_sizes_and_the_others_run(self):
        loader = self.package(self.text("pairs", PAIRS), "--dynamic=true", "--dims=s0=4")
        for size in (2, 6, 64):
            x = np.arange(size, dtype=np.float32)
            self.assertEqual(self.run_model(loader, [x], {"s0": size}), (0, x.tobytes(), ""))
        code, outputs, words = self.run_model(loader, [], {"s0": 7})
        self.assertEqual((code, outputs), (1, b""))
        self.assertIn("sizes must have s0 % 2 == 0", words)

    def test_state_lives_from_run_to_run(self):
        loader = self.package(self.text("total", TOTAL), "--dynamic=true", "--dims=s0=5")
        x = np.arange(5, dtype=np.float32)
        totals = [
            np.frombuffer(self.run_model(loader, [x], {"s0": 5}, runs)[1], np.float32)[0]
            for runs in (1, 2, 3)
        ]
        self.assertAlmostEqual(totals[1] - totals[0], x.sum(), places=4)
        self.assertAlmostEqual(totals[2] - totals[1], x.sum(), places=4)

    def test_an_input_that_the_model_changes_is_changed(self):
        loader = self.package(self.text("in_place", IN_PLACE))
        x = np.arange(4, dtype=np.float32)
        code, once, words = self.run_model(loader, [x])
        self.assertEqual((code, words), (0, ""))
        twice = self.run_model(loader, [x], runs=2)[1]
        self.assertEqual(once, (x * 2).tobytes())
        self.assertEqual(twice, (x * 4).tobytes())

    def test_an_assertion_that_does_not_hold_ends_the_run(self):
        loader = self.package(self.text("rows", ROWS), "--dynamic=true", "--dims=s0=5")
        for size in (1, 7, 64):
            x = np.arange(size, dtype=np.float32)
            at = np.array([0, size - 1, -size])
            found = self.run_model(loader, [x, at], {"s0": size})
            self.assertEqual(found, (0, x[at].tobytes(), ""))
            for wrong in (size, -size - 1):
                found = self.run_model(loader, [x, np.array([0, wrong, 0])], {"s0": size})
                self.assertEqual(found, (1, b"", f"index {wrong} of {size}\n"))

    def test_a_run_of_no_elements_works(self):
        loader = self.package(self.text("total", TOTAL), "--dynamic=true", "--dims=s0=5")
        code, outputs, words = self.run_model(loader, [], {"s0": 0})
        self.assertEqual((code, len(outputs), words), (0, 4, ""))

    def test_results_that_depend_on_weights_alone_are_there(self):
        path = self.text("constant", CONSTANT)
        model = lathe.load(path, **STRICT)
        x = np.arange(3, dtype=np.float32)
        self.assertEqual(self.run_model(self.package(path), [x])[1], bytes_of(model(x)))

    def test_a_graph_without_calls_is_a_package(self):
        x = np.arange(3, dtype=np.float32)
        loader = self.package(self.text("nothing", NOTHING))
        self.assertEqual(self.run_model(loader, [x])[1], x.tobytes())

    def test_torn_and_foreign_weights_are_refused(self):
        loader = self.package(graph("small_ffnn"))
        weights = loader.with_suffix(".weights")
        whole = weights.read_bytes()
        for size in (0, 15, 16, 63, len(whole) - 1):
            weights.write_bytes(whole[:size])
            code, _, words = self.run_model(loader, [])
            self.assertEqual(code, 1, size)
            self.assertIn("the weights ", words)
        other = bytearray(whole)
        other[16] ^= 1
        weights.write_bytes(other)
        self.assertIn("another compilation", self.run_model(loader, [])[2])

    def test_a_module_of_somebody_else_is_refused(self):
        loader = self.package(graph("small_ffnn"))
        loader.with_suffix(".wasm").write_bytes(b"\0asm\1\0\0\0")
        self.assertIn("no package of Lathe's", self.run_model(loader, [])[2])


if __name__ == "__main__":
    unittest.main()
