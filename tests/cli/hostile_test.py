"""Files and words that were made to harm: refused or shown, in bounded time and memory."""

import json
import os
import pathlib
import resource
import subprocess
import tempfile
import unittest

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
QUICK = "--measure=min_ms=0,repeats=1,warmup=0"
HANG_SECONDS = 60  # far above what anything here takes

# What a terminal obeys: a title, colours, C1, a mark that turns the direction of text.
EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e"
# The same in the strings of IR.
EVIL_IR = EVIL.encode().decode("latin-1").encode("unicode_escape").decode()

RELU = """func @main(%x: f32[4]) -> f32[4] {
  %y = relu(%x)
  return %y
}
"""


def is_printable(text):
    return all(c in "\n\t" or (c.isprintable() and c not in "\u202e") or c == " " for c in text)


def bound_memory():
    limit = MEMORY * 9 // 10
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class HostileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def lathe(self, *words, expect):
        done = subprocess.run([LATHE, *words], cwd=self.folder, capture_output=True,
                              timeout=HANG_SECONDS, preexec_fn=bound_memory)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def test_no_command_prints_what_a_terminal_obeys(self):
        graph = self.write(f"{EVIL}.lathe".replace("/", ""), f"""func @main(%x: f32[4]) -> f32[4] {{
  %w = constant() {{name = "{EVIL_IR}", dtype = f32, shape = [4]}}
  %y = add(%x, %w)
  return %y
}}
""")
        config = self.write("config.json", json.dumps({
            "name": "evil", "title": EVIL, "about": EVIL, "models": [graph],
            "weights": "random:0", "measure": {"min_ms": 0, "repeats": 1, "warmup": 0},
            "passes": {EVIL: "minimal", "default": "default"},
            "next": {EVIL: EVIL}}))
        program = self.write("program.lathe", f"""program @main(%0) -> (%1) {{
  %0 = input "{EVIL_IR}": f32[4], 16 bytes
  %1 = output "{EVIL_IR}": f32[4], 16 bytes
  steps arena 0 {{
    copy %0 to %1
  }}
}}
""")
        broken = self.write("broken.json", f'{{"{EVIL}": 1}}')
        for words in (["explain", graph], ["compile", graph], ["compile", graph, "--emit", "graph"],
                      ["compile", graph, "--emit", "loops"], ["compile", graph, "--emit", "llvm"],
                      ["compile", graph, "--emit", "asm"], ["opt", graph, "--diff"],
                      ["opt", graph, "--json"], ["opt", graph, "--print-after", "--locs"],
                      ["compile", graph, "-o", f"{EVIL}.o", "--emit", "object"],
                      ["run", graph, QUICK, "--weights", "random:0"], ["run", config],
                      ["compile", program], ["compile", program, "--emit", "loops"],
                      ["run", program]):
            with self.subTest(words=words):
                out, err = self.lathe(*words, expect=0)
                self.assertTrue(is_printable(out + err), repr(out + err))
        for words in (["run", broken], ["explain", EVIL], ["run", graph, f"--{EVIL}"], [EVIL],
                      ["compile", graph, "--emit", EVIL], ["opt", graph, "--passes", EVIL]):
            with self.subTest(words=words):
                out, err = self.lathe(*words, expect=2)
                self.assertTrue(is_printable(out + err), repr(out + err))
        results = (self.folder / "results/evil.json").read_text()
        self.assertTrue(is_printable(results))
        self.assertEqual(json.loads(results)["config"]["title"], EVIL)

    def test_text_with_such_names_reads_back(self):
        graph = self.write("a.lathe", f"""func @main(%x: f32[4]) -> f32[4] {{
  %w = constant() {{name = "{EVIL_IR}", dtype = f32, shape = [4]}}
  %y = add(%x, %w)
  return %y
}}
""")
        once, _ = self.lathe("opt", graph, "--passes=dce", expect=0)
        twice, _ = self.lathe("opt", self.write("b.lathe", once), "--passes=dce", expect=0)
        self.assertEqual(once, twice)

    def test_a_path_that_is_not_utf8_is_refused_by_every_command(self):
        path = b"\xff.lathe"
        (pathlib.Path(os.fsdecode(os.fsencode(self.folder) + b"/" + path))).write_text(RELU)
        for words in (["run", "--model"], ["compile"], ["compile", "--model"], ["opt"],
                      ["explain"]):
            with self.subTest(words=words):
                _, err = self.lathe(*words, path, expect=2)
                self.assertIn("not UTF-8", err)

    def test_sixty_doublings_are_too_large(self):
        lines, width = [], 1
        for i in range(61):
            lines.append(f"  %y{i} = cat([%{f'y{i - 1}' if i else 'x'}, "
                         f"%{f'y{i - 1}' if i else 'x'}]) {{dim = 0}}")
            width *= 2
        for count in (61, 60, 45):
            last = 2**count
            graph = self.write("doubling.lathe", f"func @main(%x: f32[1]) -> f32[{last}] {{\n" +
                               "\n".join(lines[:count]) + f"\n  return %y{count - 1}\n}}\n")
            for target in ("cpu", "wasm"):
                with self.subTest(count=count, target=target):
                    _, err = self.lathe("run", graph, QUICK, "--targets", target, expect=2)
                    self.assertRegex(err, "too-large|more than 32 bits")

    def test_an_lstm_unrolls_over_a_bounded_number_of_steps_where_it_must(self):
        def lstm(directions, steps):
            weights = ["%a: f32[8, 4]", "%b: f32[8, 2]", "%c: f32[8, 4]", "%d: f32[8, 2]"]
            weights = weights[:2 * directions]
            names = ", ".join(weight.split(":")[0] for weight in weights)
            width, cells = 2 * directions, f"f32[{directions}, 2, 2]"
            return self.write("lstm.lathe", f"""
func @main(%x: f32[{steps}, 2, 4], %h: {cells}, %i: {cells}, {", ".join(weights)})
    -> f32[{steps}, 2, {width}] {{
  %y = lstm(%x, [%h, %i], [{names}]) {{bidirectional = {str(directions == 2).lower()}}}
  return %y
}}
""")

        on_gpu = ("--target", "cuda")
        self.lathe("opt", lstm(1, 1024), *on_gpu, expect=0)
        _, err = self.lathe("opt", lstm(2, 1025), *on_gpu, expect=2)
        self.assertIn("'lstm' without a kernel of its own unrolls over up to 1024 steps, got 1025",
                      err)
        self.lathe("opt", lstm(2, 1000000), expect=0)

    def test_what_no_machine_holds_is_refused_before_it_is_made(self):
        size = MEMORY * 7 // 10 // 4
        weights = self.write("weights.lathe", f"""func @main(%x: f32[1]) -> f32[] {{
  %v = constant() {{name = "v", dtype = f32, shape = [{size}]}}
  %w = constant() {{name = "w", dtype = f32, shape = [{size}]}}
  %s = add(%v, %w)
  %t = add(%s, %x)
  %y = sum(%t) {{dim = [0], keepdim = false}}
  return %y
}}
""")
        results = self.write("results.lathe", f"""
func @main(%x: f32[1]) -> f32[{size}], f32[{size}] {{
  %a = expand(%x) {{size = [{size}]}}
  %b = neg(%a)
  return %a, %b
}}
""")
        inputs = self.write("inputs.lathe", f"""func @main(%x: f32[{size}]) -> f32[] {{
  %y = sum(%x) {{dim = [0], keepdim = false}}
  return %y
}}
""")
        for graph in (weights, results, inputs):
            with self.subTest(graph):
                _, err = self.lathe("run", graph, QUICK, "--check=none", "--weights", "random:0",
                                    expect=2)
                self.assertIn("error[too-large]", err)
                self.assertIn("this machine has", err)

    def test_tens_of_thousands_of_operands_take_seconds(self):
        count = 20000
        names = [f"%x{i}" for i in range(count)]
        graph = self.write("cat.lathe",
                           f"func @main({': f32[1], '.join(names)}: f32[1]) -> f32[{count}] {{\n"
                           f"  %y = cat([{', '.join(names)}]) {{dim = 0}}\n  return %y\n}}\n")
        self.lathe("run", graph, QUICK, expect=0)
        parts = ["%y"] + [f"%y.{i}" for i in range(1, count)]
        graph = self.write("split.lathe", f"func @main(%x: f32[{count}]) -> f32[{count}] {{\n"
                           f"  %y = split_with_sizes(%x) "
                           f"{{split_sizes = [{', '.join('1' * count)}], dim = 0}}\n"
                           f"  %z = cat([{', '.join(reversed(parts))}]) {{dim = 0}}\n"
                           "  return %z\n}\n")
        self.lathe("run", graph, QUICK, expect=0)


if __name__ == "__main__":
    unittest.main()
