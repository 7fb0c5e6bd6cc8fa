"""Files that Lathe writes are old or new, whatever befalls the writer: a kill, or a full disk."""

import ctypes
import errno
import importlib.util
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
PRELOADED = pathlib.Path("tests/cli/die_at_call.so").resolve()
PACKAGE = pathlib.Path("frontend/python").resolve()
KILLED = 137
OLD = b"what was there before"
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
MOST_BYTES = 32  # of a file, on a disk that is full

GRAPH = """func @main(%x: f32[64]) -> f32[64] {
  %y = relu(%x)
  return %y
}
"""
QUICK = "--measure=min_ms=0,repeats=1,warmup=0"
SAVE_ARRAYS = """
import sys, numpy
sys.path.insert(0, sys.argv[1])
import _archive
_archive.save_arrays(sys.argv[2], {"0": numpy.arange(50000)})
"""


def commands():
    """Command lines by name, and which of their words is the file they write."""
    yield "run --json", [LATHE, "run", "graph.lathe", QUICK, "--json", "out"]
    yield "run --save-outputs", [LATHE, "run", "graph.lathe", QUICK, "--save-outputs", "out"]
    yield "opt -o", [LATHE, "opt", "graph.lathe", "-o", "out"]
    yield "compile --emit object -o", [LATHE, "compile", "graph.lathe", "--emit", "object", "-o",
                                       "out"]
    yield "compile --emit llvm -o", [LATHE, "compile", "graph.lathe", "--emit", "llvm", "-o", "out"]
    if importlib.util.find_spec("numpy"):
        # -B: it is not Python's own writing of bytecode that is tested.
        yield "export", [sys.executable, "-B", "-c", SAVE_ARRAYS, PACKAGE / "lathe", "out"]


class WritingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "graph.lathe").write_text(GRAPH)
        self.out = self.folder / "out"

    def call(self, words, preexec=None, **environment):
        return subprocess.run(
            list(map(str, words)),
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            preexec_fn=preexec,
        )

    def test_a_killed_writer_leaves_the_old_file_or_the_new_one(self):
        for name, words in commands():
            with self.subTest(name):
                self.out.write_bytes(OLD)
                counted = self.call(words, LD_PRELOAD=str(PRELOADED),
                                    COUNT_CALLS_TO=str(self.folder / "calls"))
                self.assertEqual(counted.returncode, 0, counted.stderr)
                num_calls = int((self.folder / "calls").read_text())
                self.assertGreaterEqual(num_calls, 3)  # at least write, flush and rename
                new = self.out.read_bytes()
                self.assertNotEqual(new, OLD)
                for call in range(1, num_calls + 1):
                    self.out.write_bytes(OLD)
                    done = self.call(words, LD_PRELOAD=str(PRELOADED), DIE_AT_CALL=str(call))
                    self.assertEqual(done.returncode, KILLED, (call, done.stderr))
                    left = self.out.read_bytes()
                    if name == "run --json":  # with times in it
                        self.assertTrue(left == OLD or json.loads(left)["rows"], call)
                    else:
                        self.assertIn(left, (OLD, new), call)

    def test_a_full_disk_leaves_the_old_file_and_says_so(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        for name, words in commands():
            with self.subTest(name):
                self.out.write_bytes(OLD)
                done = self.call(words, preexec=limit)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn(os.strerror(errno.EFBIG).encode(), done.stderr)
                self.assertEqual(self.out.read_bytes(), OLD)
                self.assertEqual(list(self.folder.glob("*.tmp")), [])

    def test_output_that_cannot_be_written_is_an_error(self):
        for words in (["opt", "graph.lathe"], ["compile", "graph.lathe", "--emit", "asm"],
                      ["compile", "graph.lathe"], ["list", "ops"], ["doctor"]):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                done = subprocess.run([LATHE, *words], cwd=self.folder, stdout=full,
                                      stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 2)
                self.assertIn(b"cannot write the output", done.stderr)

    def test_a_folder_that_may_not_be_written_to_is_named(self):
        libc = ctypes.CDLL(None)

        def obey_permissions():  # root too, once the program has started
            if os.geteuid() == 0 and libc.prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) != 0:
                raise OSError("the capability stays")

        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o700)
        for name, words in commands():
            with self.subTest(name):
                done = self.call(words, preexec=obey_permissions)
                self.assertEqual(done.returncode, 2 if words[0] == LATHE else 1, done.stderr)
                self.assertIn(b"Permission denied", done.stderr)
                self.assertRegex(done.stderr, b"out|results/graph.json")
                self.assertEqual(list(self.folder.glob("out*")), [])


if __name__ == "__main__":
    unittest.main()
