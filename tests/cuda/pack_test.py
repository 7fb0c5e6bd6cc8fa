"""What is packed for a machine with a GPU: a machine that cannot pack is told what it lacks."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PACK = pathlib.Path("tests/cuda/pack.sh").resolve()


class PackTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def pack(self, *words, tools=()):
        """With these programs on the path, and what any machine has."""
        path = self.folder / "bin"
        path.mkdir()
        for name in ("dirname", "readlink"):
            os.symlink(shutil.which(name), path / name)
        for name in tools:
            (path / name).write_text("#!/bin/sh\nexit 1\n")
            (path / name).chmod(0o755)
        done = subprocess.run(
            ["/bin/bash", PACK, *words], env={"PATH": str(path)}, text=True, capture_output=True
        )
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_without_bazel_it_names_the_command_that_installs_it(self):
        self.assertIn("./lathe doctor", self.pack(self.folder / "files"))

    def test_missing_packages_are_named_before_anything_is_made(self):
        error = self.pack(self.folder / "files", tools=["bazel"])
        self.assertRegex(error, r"apt-get install .*xz-utils")
        self.assertFalse((self.folder / "files").exists())

    def test_it_wants_a_folder(self):
        self.assertIn("usage: tests/cuda/pack.sh FILES", self.pack(tools=["bazel"]))


if __name__ == "__main__":
    unittest.main()
