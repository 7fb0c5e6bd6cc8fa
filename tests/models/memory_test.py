"""What a model costs in memory: its packed weights once, the planned arena, and little else.

The peak of a fresh process that compiles a model and runs it may be, above that of a process that
does so with the smallest model, the weights as the program holds them (packed, or mapped and read
in place), the caller's inputs and outputs, 1.5 times the planned arena, and 16 MB for the graph,
the passes and code generation. The mapped file is not in it: its pages are let go as they are
packed. The smallest model may take 32 MB more than a process which only starts: pages of LLVM's and
Lathe's own code for the most part, of which the system maps more or fewer as it likes. That is why
the others are not compared with the start.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
ZOO = pathlib.Path("tests/zoo").resolve()
SMALLEST = "lerp"
MODELS = ["ffnn", "resnet18", "resnet50", "bert_base", "gpt2", "unet", "vit_b_16"]
CODE = 32e6
OVERHEAD = 16e6


def peak_bytes(*words):
    """The most memory that a process of these words held; None when it failed."""
    process = subprocess.Popen([LATHE, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024 if process.returncode == 0 else None


def run_model(model):
    """The peak of a process that compiles and runs the model, and what its program asks for."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        options = "--weights random:0 --targets cpu --threads 1 --check none"
        peak = peak_bytes("run", "--model", ZOO / f"{model}.aten.json.gz", *options.split(),
                          "--json", results)
        return peak, json.loads(results.read_text())["rows"][0]["memory"]


class MemoryTest(unittest.TestCase):
    def test_the_smallest_model(self):
        peak, _ = run_model(SMALLEST)
        extra = peak - peak_bytes("list", "passes")
        print(f"{SMALLEST}: {extra / 1e6:.1f} of {CODE / 1e6:.1f} MB")
        self.assertLessEqual(extra, CODE)

    def check(self, model):
        smallest, _ = run_model(SMALLEST)
        peak, memory = run_model(model)
        weights = memory["persistent_bytes"] + memory["in_place_bytes"]
        allowed = weights + memory["io_bytes"] + 1.5 * memory["arena_bytes"] + OVERHEAD
        terms = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in memory.items())
        print(f"{model}: {(peak - smallest) / 1e6:.1f} of {allowed / 1e6:.1f} MB ({terms})")
        self.assertLessEqual(peak - smallest, allowed, terms)


for name in MODELS:
    setattr(MemoryTest, f"test_{name}", lambda self, name=name: self.check(name))

if __name__ == "__main__":
    unittest.main()
