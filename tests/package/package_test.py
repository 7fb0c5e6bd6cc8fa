"""Packages: a C program runs one with neither Lathe nor a compiler beside it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

os.environ["LATHE_LIBRARY"] = str(pathlib.Path("frontend/api/liblathe.so").resolve())
sys.path.insert(0, "frontend/python")
sys.path.insert(0, "tests/package")

import numpy as np
from graphs import (
    CONSTANT,
    IN_PLACE,
    NOTHING,
    PAIRS,
    ROWS,
    TOTAL,
    bytes_of,
    graph,
    model_inputs,
)

import lathe

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
PROGRAM = pathlib.Path("tests/package/run_model.c").resolve()

class Package:
    """A model compiled to a package, and a program that runs it."""

    def __init__(self, folder, model, *flags):
        self.folder = folder
        command = [LATHE, "compile", model, "--emit=package", "-o", folder, *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        self.header = next(folder.glob("*.h"))
        self.name = self.header.stem
        self.program = folder / "run_model"
        big = self.name.upper()
        words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Wl,-rpath,$ORIGIN",
                 f"-DMODEL={self.name}", f'-DHEADER="{self.header.name}"', f"-I{folder}",
                 *(f"-DNUM_{what}={big}_NUM_{what}" for what in ("INPUTS", "OUTPUTS", "SIZES")),
                 "-o", self.program, PROGRAM, folder / f"{self.name}.so"]
        subprocess.run(words, check=True)

    def run(self, inputs, sizes=(), runs=1, weights=None):
        """(exit code, bytes of outputs, words), in an environment that has nothing."""
        words = [self.program, weights or self.folder / f"{self.name}.weights", str(runs)]
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                [*words, *map(str, sizes)], input=b"".join(a.tobytes() for a in inputs),
                capture_output=True, env={}, cwd=empty,
            )
        return done.returncode, done.stdout, done.stderr.decode()


class PackageTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def package(self, model, *flags, name="p"):
        return Package(self.folder / name, model, "--weights=random:1", *flags)

    def text(self, name, text):
        path = self.folder / f"{name}.lathe"
        path.write_text(text)
        return path

    def test_gives_the_bits_that_the_library_gives(self):
        for name in ("small_ffnn", "small_cnn", "attention_block"):
            with self.subTest(name):
                package = self.package(graph(name), "--threads=2", name=name)
                path = graph(name)
                model = lathe.load(path, weights="random:1", threads=2)
                inputs = model_inputs(model)
                code, outputs, words = package.run(inputs)
                self.assertEqual((code, words), (0, ""))
                self.assertEqual(outputs, bytes_of(model(*inputs)))

    def test_one_package_serves_every_size(self):
        package = self.package(graph("small_encoder"), "--dynamic=true")
        path = graph("small_encoder")
        for size in (1, 2, 3, 17, 64, 127):
            with self.subTest(size):
                model = lathe.load(path, weights="random:1", dynamic=True, dims={"s27": size})
                inputs = model_inputs(model)
                code, outputs, words = package.run(inputs, [size])
                self.assertEqual((code, words), (0, ""))
                self.assertEqual(outputs, bytes_of(model(*inputs)))

    def test_a_size_out_of_range_is_refused_with_the_range(self):
        package = self.package(graph("small_encoder"), "--dynamic=true")
        code, outputs, words = package.run([], [513])
        self.assertEqual((code, outputs), (1, b""))
        self.assertRegex(words, r"bind: .*512.*got 513")

    def test_a_guard_refuses_sizes_and_the_others_run(self):
        package = self.package(self.text("pairs", PAIRS), "--dynamic=true", "--dims=s0=4")
        for size in (2, 6, 64):
            x = np.arange(size, dtype=np.float32)
            self.assertEqual(package.run([x], [size]), (0, x.tobytes(), ""))
        code, outputs, words = package.run([], [7])
        self.assertEqual((code, outputs), (1, b""))
        self.assertIn("s0", words)

    def test_an_assertion_that_does_not_hold_ends_the_run(self):
        package = self.package(self.text("rows", ROWS), "--dynamic=true", "--dims=s0=5")
        for size in (1, 7, 64):
            x = np.arange(size, dtype=np.float32)
            at = np.array([0, size - 1, -size])
            self.assertEqual(package.run([x, at], [size]), (0, x[at].tobytes(), ""))
            for wrong in (size, -size - 1):
                code, outputs, words = package.run([x, np.array([0, wrong, 0])], [size])
                self.assertEqual((code, outputs), (1, b""))
                self.assertIn(f"index {wrong} of {size}", words)

    def test_state_lives_from_run_to_run(self):
        package = self.package(self.text("total", TOTAL), "--dynamic=true", "--dims=s0=5")
        x = np.arange(5, dtype=np.float32)
        totals = [
            np.frombuffer(package.run([x], [5], runs)[1], np.float32)[0] for runs in (1, 2, 3)
        ]
        self.assertAlmostEqual(totals[1] - totals[0], x.sum(), places=4)
        self.assertAlmostEqual(totals[2] - totals[1], x.sum(), places=4)

    def test_an_input_that_the_model_changes_is_changed(self):
        package = self.package(self.text("in_place", IN_PLACE))
        x = np.arange(4, dtype=np.float32)
        self.assertEqual(package.run([x])[1], (x * 2).tobytes())
        self.assertEqual(package.run([x], runs=2)[1], (x * 4).tobytes())

    def test_a_run_of_no_elements_works(self):
        package = self.package(self.text("total", TOTAL), "--dynamic=true", "--dims=s0=5")
        code, outputs, words = package.run([np.zeros(0, np.float32)], [0])
        self.assertEqual((code, len(outputs), words), (0, 4, ""))

    def test_results_that_depend_on_weights_alone_are_there(self):
        path = self.text("constant", CONSTANT)
        package = self.package(path)
        model = lathe.load(path, weights="random:1")
        x = np.arange(3, dtype=np.float32)
        self.assertEqual(package.run([x])[1], bytes_of(model(x)))

    def test_a_graph_without_calls_is_a_package(self):
        package = self.package(self.text("nothing", NOTHING))
        x = np.arange(3, dtype=np.float32)
        self.assertEqual(package.run([x])[1], x.tobytes())

    def test_the_library_needs_the_c_library_alone(self):
        package = self.package(graph("small_ffnn"))
        library = package.folder / f"{package.name}.so"
        dynamic = subprocess.run(
            ["readelf", "-d", library], capture_output=True, text=True, check=True
        ).stdout
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
        self.assertLessEqual(needed, {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"})

    def test_two_packages_live_in_one_process(self):
        import ctypes

        names = ("small_ffnn", "small_cnn")
        for name in names:
            self.package(graph(name), name=name)
        loaded = [ctypes.CDLL(str(self.folder / name / f"{name}.so")) for name in names]
        for library, name in zip(loaded, names):
            load, error = getattr(library, f"{name}_load"), getattr(library, f"{name}_error")
            load.restype, error.restype = ctypes.c_void_p, ctypes.c_char_p
            handle = ctypes.c_void_p(load(str(self.folder / name / f"{name}.weights").encode(), 1))
            self.assertIsNone(error(handle))

    def test_weights_of_another_compilation_are_refused(self):
        package = self.package(graph("small_ffnn"))
        other = Package(self.folder / "other", graph("small_ffnn"), "--weights=random:2")
        weights = other.folder / f"{other.name}.weights"
        code, _, words = package.run([], weights=weights)
        self.assertEqual(code, 1)
        self.assertIn("another package, or to another compilation", words)

    def test_torn_and_missing_weights_are_refused(self):
        package = self.package(graph("small_ffnn"))
        whole = (package.folder / f"{package.name}.weights").read_bytes()
        torn = self.folder / "torn"
        for size in (0, 15, 16, 63, 64, len(whole) // 2, len(whole) - 1):
            torn.write_bytes(whole[:size])
            code, _, words = package.run([], weights=torn)
            self.assertEqual(code, 1, size)
            self.assertRegex(words, "not whole|no weights file", size)
        code, _, words = package.run([], weights=self.folder / "none")
        self.assertEqual(code, 1)
        self.assertIn("No such file", words)

    def test_made_weights_must_be_asked_for(self):
        done = subprocess.run(
            [LATHE, "compile", graph("small_ffnn"), "--emit=package", "-o", self.folder / "p"],
            capture_output=True, text=True,
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--weights=random:SEED", done.stderr)
        self.assertFalse((self.folder / "p").exists())

    def test_a_folder_must_be_given(self):
        done = subprocess.run(
            [LATHE, "compile", graph("small_ffnn"), "--weights=random:1", "--emit=package"],
            capture_output=True, text=True,
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("-o FOLDER", done.stderr)


if __name__ == "__main__":
    unittest.main()
