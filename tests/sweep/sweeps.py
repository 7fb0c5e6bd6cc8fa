"""Sweeps for tests: written into a folder of their own and run as the command line runs them.

Their models fail before PyTorch is imported, so that a job takes a tenth of a second.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / "frontend/python"))

from lathe.sweep import journal  # noqa: E402

# What a model's file does when it is run.
MODELS = {
    "raises": "raise ValueError('no such layer')",
    "leaves": "import os; os._exit(3)",
    "breaks": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "grows": "x = bytearray(64 << 30)",
    "exits": "raise SystemExit('never mind')",
    "hangs": "import subprocess, time\nsubprocess.Popen(['sleep', '654'])\ntime.sleep(600)",
}


class SweepFolder:
    """A folder with the files of MODELS, and a sweep."""

    def __init__(self, case, names=(), **spec):
        """case: the test that it lasts for. names: of files whose models the sweep runs."""
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in MODELS.items():
            (self.folder / f"{name}.py").write_text(f"{text}\n\ndef model():\n    pass\n")
        self.spec = {"models": [f"file:{name}.py:model" for name in names], "backends": ["eager"],
                     "measure": {"samples": 0}} | spec
        self.path = self.folder / "test.json"
        self.results = self.folder / "results/test.sweep.jsonl"
        self.write()

    def write(self, **changes):
        self.spec |= changes
        self.path.write_text(json.dumps(self.spec))

    def start(self, *flags, **streams):
        """The command as a process, in its own session as a shell would have it."""
        package = str(ROOT / "frontend/python")
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            [sys.executable, "-m", "lathe.sweep", str(self.path), *flags], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}, **streams,
        )

    def run(self, *flags):
        """(exit code, standard output, standard error)."""
        process = self.start(*flags)
        out, errors = process.communicate(timeout=300)
        return process.returncode, out, errors

    def rows(self):
        return [r for r in journal.read(self.results)[0] if r["kind"] == "row"]

    def count(self):
        return self.results.read_bytes().count(b'"kind":"row"') if self.results.exists() else 0

    def table(self):
        """What must be the same however often a sweep was killed: job, status and reason."""
        return sorted((r["job"], r["status"], r["reason"]) for r in self.rows())

    def leftovers(self):
        """What lies beside the results file."""
        return [p.name for p in self.results.parent.iterdir() if p != self.results]


def children(pid):
    """Process ids of a process's children."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def group(number):
    """Process ids of a process group, of those that run."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[2]) == number:
            found.append(int(path.name))
    return found
