"""What a model costs in memory: its packed weights once, the planned arena, and little else.

The peak of a fresh process that compiles a model and runs it, above that of a process which only
starts, may be the weights as the program holds them (packed, or mapped and read in place), the
caller's inputs and outputs, 1.5 times the planned arena, and 32 MB for the graph, the passes and
code generation. The mapped file is not in it: its pages are let go as they are packed.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
ZOO = pathlib.Path("tests/zoo").resolve()
MODELS = ["lerp", "ffnn", "resnet18", "resnet50", "bert_base", "gpt2", "unet", "vit_b_16"]
OVERHEAD = 32e6


def peak_bytes(*words):
    """The most memory that a process of these words held; None when it failed."""
    process = subprocess.Popen([LATHE, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024 if process.returncode == 0 else None


class MemoryTest(unittest.TestCase):
    def check(self, model):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "results.json"
            path = ZOO / f"{model}.aten.json.gz"
            options = "--weights random:0 --targets cpu --threads 1 --check none"
            empty = peak_bytes("list", "passes")
            peak = peak_bytes("run", "--model", path, *options.split(), "--json", results)
            self.assertIsNotNone(peak)
            memory = json.loads(results.read_text())["rows"][0]["memory"]
        weights = memory["persistent_bytes"] + memory["in_place_bytes"]
        allowed = weights + memory["io_bytes"] + 1.5 * memory["arena_bytes"] + OVERHEAD
        terms = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in memory.items())
        print(f"{model}: {(peak - empty) / 1e6:.1f} of {allowed / 1e6:.1f} MB ({terms})")
        self.assertLessEqual(peak - empty, allowed, terms)


for name in MODELS:
    setattr(MemoryTest, f"test_{name}", lambda self, name=name: self.check(name))

if __name__ == "__main__":
    unittest.main()
