"""lathe explain of a bundle: frames, breaks with their lines, recompiles, and what is refused."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import zipfile

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
CAPTURED = pathlib.Path("tests/bundle/three_breaks.zip").absolute()


def line(**row):
    return json.dumps(row) + "\n"


GRAPH = {"id": "0_0", "ops": 2, "ends": "break", "json": "graphs/0_0.json",
         "python": "graphs/0_0.py", "refused": None,
         "inputs": [{"name": "l_x_", "source": "L['x']", "is_state": False}]}
MANIFEST = {
    "format": "lathe-bundle", "version": 1, "torch": "2.13.0", "model": "Mine", "calls": 2,
    "origin": "dynamo", "dynamic": None,
    "frames": [{"frame": 0, "function": "forward", "is_resumed": False, "file": "m.py", "line": 3},
               {"frame": 1, "function": "forward", "is_resumed": True, "file": "m.py", "line": 6}],
    "compiles": [
        {"frame": 0, "compile": 0, "call": 0, "guards": "guards/0_0", "seconds": 0.25,
         "graph": GRAPH},
        {"frame": 0, "compile": 1, "call": 1, "guards": None, "graph": None},
        {"frame": 1, "compile": 1, "call": 1, "guards": None,
         "graph": {**GRAPH, "id": "1_1", "json": None, "python": None, "ends": "return",
                   "refused": "no words for it"}},
    ],
}
BREAK = {"reason": "a call of print", "file": "m.py", "line": 5, "code": "print(x)",
         "hints": ["do not print"], "explanation": "why", "url": "https://example.org"}
RECOMPILE = {"reasons": ["0/0: n == 3"], "kind": "value", "reason": "n == 3", "cause": 0,
             "file": "m.py", "line": 4, "code": "x * n"}
FILES = {
    "manifest.json": json.dumps(MANIFEST),
    "breaks.jsonl": line(frame=0, compile=0, **BREAK) + line(frame=0, compile=1, **BREAK),
    "recompiles.jsonl": line(frame=0, compile=1, call=1, **RECOMPILE)
    + line(frame=1, compile=1, call=1, **RECOMPILE),
    "sources.json": json.dumps({"m.py": {str(n): f"line {n}" for n in range(1, 10)}}),
    "guards/0_0.txt": "TREE_GUARD_MANAGER:\n+- LAMBDA_GUARD: L['n'] == 3\n",
    "guards/0_0.json": "[]",
    "graphs/0_0.py": "def forward(self, l_x_):\n",
}
# y = relu(x), as torch.export writes it.
TENSOR = {"dtype": 7, "sizes": [{"as_int": 4}], "requires_grad": False,
          "device": {"type": "cpu", "index": None}, "strides": [{"as_int": 1}],
          "storage_offset": {"as_int": 0}, "layout": 7}
X, Y = {"as_tensor": {"name": "x"}}, {"as_tensor": {"name": "y"}}
MODEL = {
    "graph_module": {
        "graph": {
            "inputs": [X], "outputs": [Y], "tensor_values": {"x": TENSOR, "y": TENSOR},
            "nodes": [{"target": "torch.ops.aten.relu.default", "outputs": [Y], "metadata": {},
                       "inputs": [{"name": "self", "arg": X, "kind": 1}]}],
            "sym_int_values": {}, "sym_bool_values": {}, "sym_float_values": {},
            "custom_obj_values": {}, "is_single_tensor_return": False,
        },
        "signature": {"input_specs": [{"user_input": {"arg": X}}],
                      "output_specs": [{"user_output": {"arg": Y}}]},
        "module_call_graph": [],
    },
    "opset_version": {"aten": 10}, "range_constraints": {}, "guards_code": [], "verifiers": [],
    "schema_version": {"major": 8, "minor": 17}, "torch_version": "2.13.0",
}


class BundleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, files, name="b"):
        files = {**files, "graphs/0_0.json": json.dumps(MODEL)}
        for file, text in files.items():
            path = self.folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        with zipfile.ZipFile(self.folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file, text in files.items():
                archive.writestr(file, text)

    def lathe(self, *words, expect=0):
        done = subprocess.run([LATHE, *words], cwd=self.folder, text=True, capture_output=True,
                              env={**os.environ, "NO_COLOR": "1"})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def test_shows_breaks_in_their_code_and_one_cause(self):
        self.write(FILES)
        text = self.lathe("explain", "b")
        self.assertIn("Mine, captured by dynamo of torch 2.13.0 in 2 calls", text)
        self.assertIn("2 frames, 2 graphs, 1 graph break, 2 recompiles of 1 cause", text)
        self.assertIn("break 1   m.py:5   ends 0_0, 0_1\n  a call of print\n"
                      "         3  line 3\n         4  line 4\n  >      5  line 5\n"
                      "         6  line 6\n         7  line 7\n    hint: do not print\n", text)
        self.assertIn("call 1 recompiles 0_1   forward m.py:3\n    n == 3\n    m.py:4  x * n\n"
                      "    and for it 1_1\n", text)
        self.assertIn("no JSON for Lathe: no words for it", text)
        self.assertIn("forward, resumed m.py:6", text)
        self.assertIn("./lathe explain b --graph 0_0 ", text)

    def test_names_the_lines_of_three_breaks_and_two_recompiles(self):
        text = self.lathe("explain", CAPTURED)
        self.assertIn("4 frames, 6 graphs, 3 graph breaks, 2 recompiles of 2 causes", text)
        lines = CAPTURED.with_suffix(".py").read_text().splitlines()
        broken = [i for i, code in enumerate(lines, 1) if "# break:" in code]
        self.assertEqual([f"break {k}   three_breaks.py:{i} " in text
                          for k, i in enumerate(broken, 1)], [True] * 3)
        for mark in ("self.inner(x) * scale", "if is_gated:"):
            at, = (i for i, code in enumerate(lines, 1) if mark in code)
            self.assertIn(f"    three_breaks.py:{at}  {lines[at - 1].strip()}\n", text)

    def test_a_zip_shows_the_same(self):
        self.write(FILES)
        self.assertEqual(self.lathe("explain", "b.zip").replace("b.zip", "b"),
                         self.lathe("explain", "b"))

    def test_one_graph_has_its_python_guards_and_end(self):
        self.write(FILES)
        text = self.lathe("explain", "b", "--graph", "0_0")
        for part in ("def forward(self, l_x_):", "L['x']", "+- LAMBDA_GUARD: L['n'] == 3",
                     "ends at m.py:5: a call of print", "./lathe explain b/graphs/0_0.json "):
            self.assertIn(part, text)
        self.assertIn("no graph '0_9' among 0_0, 1_1; did you mean '0_0'?",
                      self.lathe("explain", "b", "--graph", "0_9", expect=2))

    def test_a_graph_of_a_folder_or_zip_is_a_model(self):
        self.write(FILES)
        for path in ("b/graphs/0_0.json", "b.zip/graphs/0_0.json"):
            self.assertIn("relu", self.lathe("opt", path, "--passes=default"))
        self.assertIn("has no entry 'graphs/9_9.json'",
                      self.lathe("opt", "b.zip/graphs/9_9.json", "--passes=default", expect=2))

    def test_json_is_the_bundles_own(self):
        self.write(FILES)
        rows = json.loads(self.lathe("explain", "b", "--json"))
        self.assertEqual(rows["manifest"], MANIFEST)
        self.assertEqual([row["compile"] for row in rows["breaks"]], [0, 1])
        self.assertEqual(len(rows["recompiles"]), 2)

    def test_refuses_options_of_models_and_folders_that_are_none(self):
        self.write(FILES)
        self.assertIn("--choices is for models",
                      self.lathe("explain", "b", "--choices", expect=2))
        self.assertIn("--threads is for models",
                      self.lathe("explain", "b", "--threads", "1", expect=2))
        self.assertIn("'b/graphs' has no 'manifest.json'",
                      self.lathe("explain", "b/graphs", expect=2))
        self.assertIn("--graph is for bundles",
                      self.lathe("explain", "b/graphs/0_0.json", "--graph", "0_0", expect=2))

    def test_names_no_file_outside_of_the_bundle(self):
        (self.folder / "secret.py").write_text("the secret")
        hostile = json.loads(json.dumps(MANIFEST))
        hostile["compiles"][0]["graph"]["python"] = "../secret.py"
        self.write({**FILES, "manifest.json": json.dumps(hostile)})
        for path in ("b", "b.zip"):
            error = self.lathe("explain", path, "--graph", "0_0", expect=2)
            self.assertNotIn("the secret", error)
            self.assertIn('expected "graphs/0_0.py"', error)

    def test_shows_what_a_terminal_would_obey(self):
        hostile = json.loads(json.dumps(MANIFEST))
        hostile["model"] = "a\x1b[2Jb"
        self.write({**FILES, "manifest.json": json.dumps(hostile)})
        self.assertNotIn("\x1b", self.lathe("explain", "b"))


if __name__ == "__main__":
    unittest.main()
