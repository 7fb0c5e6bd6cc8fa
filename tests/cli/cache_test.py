"""Compiled programs are kept for other processes: found, refused or replaced, never half there."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MODEL = """dim s0 in [1, 64]
func @main(%x: f32[s0, 3]) -> f32[s0, 5] {
  %w = constant() {name = "w", dtype = f32, shape = [5, 3]}
  %y = linear(%x, %w)
  %z = relu(%y)
  return %z
}
"""
# One process: loads, runs, says what the cache did and the bytes that came out.
CLIENT = """
import json, sys
sys.path.insert(0, "frontend/python")
import numpy as np
import lathe
path, options = sys.argv[1], json.loads(sys.argv[2])
model = lathe.load(path, weights="random:1", cache=True, dims={"s0": 4}, **options)
x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
print(json.dumps([model.info["cache"], model(x).tobytes().hex()]))
"""


class CacheTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.home = self.folder / "home"
        self.model = self.folder / "tiny.lathe"
        self.model.write_text(MODEL)

    @property
    def programs(self):
        return self.home / "lathe" / "programs"

    def files(self):
        return sorted(self.programs.glob("*.program"))

    def start(self, **options):
        environment = os.environ | {
            "LATHE_LIBRARY": str(pathlib.Path("frontend/api/liblathe.so").resolve()),
            "XDG_CACHE_HOME": str(self.home),
        }
        return subprocess.Popen(
            [sys.executable, "-c", CLIENT, self.model, json.dumps({"threads": 1} | options)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )

    def load(self, **options):
        """(what the cache said, the bytes of the result)."""
        process = self.start(**options)
        out, error = process.communicate()
        self.assertEqual(process.returncode, 0, error)
        return json.loads(out)

    def test_the_second_process_finds_what_the_first_made(self):
        first, bits = self.load()
        self.assertIn("nothing is kept for 'tiny' yet", first)
        second, same = self.load()
        self.assertEqual(second, f"found {self.files()[0]}")
        self.assertEqual(same, bits)

    def test_a_program_for_every_size_is_kept_too(self):
        self.load(dynamic=True)
        said, _ = self.load(dynamic=True)
        self.assertTrue(said.startswith("found"), said)

    def test_a_miss_names_the_part_that_differs(self):
        self.load()
        for options, words in (
            ({"threads": 2}, "its threads is '1', here '2'"),
            ({"passes": "minimal"}, "its passes is 'default', here 'minimal'"),
            ({"numerics": "strict"}, "its numerics is 'default', here 'strict'"),
            ({"dynamic": True}, "its dynamic is '', here 's0'"),
        ):
            said, _ = self.load(**options)
            self.assertIn(words, said)

    def test_a_changed_graph_is_another_program(self):
        self.load()
        self.model.write_text(MODEL.replace("relu(%y)", "neg(%y)"))
        said, _ = self.load()
        self.assertIn("its graph is", said)

    def test_a_folder_may_be_moved(self):
        _, bits = self.load()
        moved = self.folder / "elsewhere"
        self.home.rename(moved)
        self.home = moved
        said, same = self.load()
        self.assertTrue(said.startswith("found"), said)
        self.assertEqual(same, bits)

    def test_a_torn_file_is_compiled_anew_and_replaced(self):
        _, bits = self.load()
        file = self.files()[0]
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[-100] ^= 1
        cuts = [whole[:size] for size in (0, 8, 16, 24, 40, len(whole) // 2, len(whole) - 1)]
        for bytes_there in (*cuts, bytes(flipped), whole + b"more"):
            file.write_bytes(bytes_there)
            said, same = self.load()
            self.assertIn("compiled: ", said)
            self.assertEqual(same, bits)
            self.assertEqual(file.read_bytes(), whole)

    def test_a_folder_that_cannot_be_written_is_no_error(self):
        self.home.write_text("a file where the folder would be")
        said, bits = self.load()
        self.assertIn("compiled: ", said)
        self.assertTrue(bits)

    def test_what_a_killed_writer_left_is_no_program_of_something_else(self):
        self.load()
        (path,) = self.files()
        path.rename(path.with_name(path.name + ".7.0.tmp"))
        said, _ = self.load()
        self.assertIn("nothing is kept for 'tiny' yet", said)

    def test_killed_writers_leave_nothing_that_is_read(self):
        _, bits = self.load()
        rng = random.Random(7)
        for round_number in range(8):
            shutil.rmtree(self.programs)
            started = [self.start() for _ in range(2)]
            time.sleep(rng.uniform(0.1, 0.6))
            for process in started:
                process.send_signal(signal.SIGKILL)
                process.communicate()
            said, same = self.load()
            self.assertEqual(same, bits, round_number)
            self.assertRegex(said, "^(found|compiled: nothing is kept)")
            self.assertEqual(self.load(), [f"found {self.files()[0]}", bits])

    def test_processes_at_once_agree(self):
        started = [self.start() for _ in range(4)]
        results = []
        for process in started:
            out, error = process.communicate()
            self.assertEqual(process.returncode, 0, error)
            results.append(json.loads(out)[1])
        self.assertEqual(len(set(results)), 1)
        self.assertEqual(len(self.files()), 1)
        self.assertEqual([p for p in self.programs.iterdir() if p.suffix == ".tmp"], [])


if __name__ == "__main__":
    unittest.main()
