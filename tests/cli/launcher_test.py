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
        shutil.copy("tools/web.sh", self.root / "tools")
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


if __name__ == "__main__":
    unittest.main()
