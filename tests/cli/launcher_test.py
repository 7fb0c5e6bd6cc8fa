"""The launcher: what two that start at once do to the tree they share."""

import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

FOLDERS = ("ir", "passes", "backends", "frontend", "experiments", "tools")

# Fails when another build runs; its output is the program that the launcher forwards to.
BAZEL = """#!/bin/bash
echo "$1" >>"$LOG"
mkdir "$LOG.running" || exit 1
sleep 0.5
rmdir "$LOG.running"
[ -z "$BROKEN" ] || { echo "ERROR: broken"; exit 1; }
mkdir -p bazel-bin/frontend/cli
printf '#!/bin/sh\\necho ran \"$@\"\\n' >bazel-bin/frontend/cli/lathe
chmod +x bazel-bin/frontend/cli/lathe
"""
DPKG_QUERY = "#!/bin/sh\necho installed\n"


class Launcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "tree")
        for name in FOLDERS:
            (self.root / name).mkdir(parents=True)
        for name in ("WORKSPACE", ".bazelrc"):
            (self.root / name).touch()
        shutil.copy("lathe", self.root)
        for name in ("sweep.sh", "web.sh"):
            shutil.copy(f"tools/{name}", self.root / "tools")
        programs = pathlib.Path(folder.name, "bin")
        programs.mkdir()
        for name, text in (("bazel", BAZEL), ("dpkg-query", DPKG_QUERY)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.log = pathlib.Path(folder.name, "builds")
        self.environment = {"PATH": f"{programs}:/usr/bin:/bin", "LOG": str(self.log)}

    def start(self, *arguments, **environment):
        return subprocess.Popen(
            [self.root / "lathe", *arguments],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def builds(self):
        return len(self.log.read_text().splitlines())

    def test_two_at_once_build_once_and_both_run(self):
        launchers = [self.start("run", str(i)) for i in range(2)]
        for i, launcher in enumerate(launchers):
            output, errors = launcher.communicate()
            self.assertEqual((launcher.returncode, output), (0, f"ran run {i}\n"), errors)
            self.assertNotIn("cannot stat", errors)
        self.assertEqual(self.builds(), 1)

    def test_a_built_tree_is_not_built_again(self):
        for _ in range(2):
            self.start("list").communicate()
        self.assertEqual(self.builds(), 1)
        time.sleep(0.01)
        (self.root / "ir" / "new.h").touch()
        self.start("list").communicate()
        self.assertEqual(self.builds(), 2)

    def test_a_failed_build_leaves_the_turn_to_the_next(self):
        launchers = [self.start("list", BROKEN="1") for _ in range(2)]
        for launcher in launchers:
            output, errors = launcher.communicate()
            self.assertEqual((launcher.returncode, output), (3, ""))
            self.assertIn("Lathe does not build", errors)
        self.assertEqual(self.start("list").communicate()[0], "ran list\n")

    def fake_python(self, log):
        """A Python of .lathe/venv, and its pip, that say what they were asked."""
        programs = self.root / ".lathe/venv/bin"
        programs.mkdir(parents=True)
        (programs / "python").write_text(
            '#!/bin/sh\n[ "$1" != - ] || exit 1\n'
            '[ "$1" != -m ] || echo "$PYTHONPATH $@"\n')
        (programs / "pip").write_text(f'#!/bin/sh\necho "$@" >>{log}\n')
        for name in ("python", "pip"):
            (programs / name).chmod(0o755)

    def test_a_sweep_gets_the_packages_that_its_models_need_and_no_others(self):
        log = self.root / "pip.txt"
        self.fake_python(log)
        path = self.root / "sweep.json"
        path.write_text('{"models": ["timm:vit_tiny_patch16_224"]}')
        output, errors = self.start("sweep", str(path), "--list").communicate()
        self.assertEqual(
            output, f"{self.root}/frontend/python -m lathe.sweep {path} --list\n", errors)
        asked = log.read_text()
        for name in ("jsonschema==", "tqdm==", "timm==", "torchvision=="):
            self.assertIn(name, asked)
        for name in ("transformers==", "ray=="):
            self.assertNotIn(name, asked)

    def test_a_report_needs_no_build_and_no_pytorch(self):
        log = self.root / "pip.txt"
        self.fake_python(log)
        output, errors = self.start("report", "a.sweep.jsonl", "-o", "b.html").communicate()
        expected = f"{self.root}/frontend/python -m lathe.report a.sweep.jsonl -o b.html\n"
        self.assertEqual(output, expected, errors)
        self.assertFalse(self.log.exists())
        self.assertIn("vl-convert-python==", log.read_text())


if __name__ == "__main__":
    unittest.main()
