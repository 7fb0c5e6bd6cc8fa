"""The command line as a person meets it: exit codes, where errors point, what results hold."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import zipfile

LATHE = pathlib.Path("frontend/cli/lathe").resolve()
GRAPHS = pathlib.Path("experiments/graphs").resolve()
FIXTURES = pathlib.Path("tests/fixtures").resolve()

RELU = """func @main(%x: f32[4]) -> f32[4] {
  %a = relu(%x)
  %b = relu(%x)
  %y = add(%a, %b)
  return %y
}
"""

PROGRAM = """program @main(%0) -> (%2) {
  %0 = input "x": f32[4], 16 bytes
  %1 = weight "w": f32[4], 16 bytes of "net.w"
  %2 = output "y": f32[4], 16 bytes
  steps arena 0 {
    kernel @scale(%0, %1, %2)
  }
}

kernel @scale(%x: f32[4], %w: f32[4], %y: f32[4] out) {
  parallel %i in 0..4 {
    store %y[%i] = load %x[%i] * load %w[%i]
  }
}
"""


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def lathe(self, *words, expect=0):
        environment = {**os.environ, "NO_COLOR": "1", "XDG_CACHE_HOME": str(self.folder / "cache")}
        done = subprocess.run(
            [LATHE, *map(str, words)],
            cwd=self.folder,
            env=environment,
            text=True,
            capture_output=True,
        )
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout if expect in (0, 1) else done.stderr

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    # Results.

    def test_output_goes_through_links_and_pipes(self):
        relu = self.write("relu.lathe", RELU)
        target = self.write("target.txt", "old")
        link = self.folder / "link.txt"
        link.symlink_to(target)
        self.lathe("compile", relu, "--emit", "graph", "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertIn("relu", target.read_text())
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
            self.lathe("compile", relu, "--emit", "graph", "-o", pipe)
            self.assertIn("relu", reader.communicate(timeout=60)[0])
        self.assertTrue(pipe.is_fifo())

    def test_run_writes_rows_with_every_field(self):
        self.lathe(
            "run", "--model", GRAPHS / "small_ffnn.json.gz", "--weights", "random:0",
            "--threads", "1", "--targets", "cpu,interp", "--check", "interp",
            "--measure", "repeats=3,min_ms=0",
            "--json", "out.json",
        )
        results = json.loads((self.folder / "out.json").read_text())
        self.assertEqual([row["target"] for row in results["rows"]], ["cpu", "interp"])
        row = results["rows"][0]
        for field in (
            "model variant target threads dtype status compile_ms median_ms p10_ms p90_ms kernels "
            "peak_bytes gflops max_abs_error samples_ms"
        ).split():
            self.assertIn(field, row)
        self.assertEqual(row["status"], "ok")
        self.assertEqual(row["dtype"], "f32")
        self.assertEqual(len(row["samples_ms"]), 3)
        self.assertLess(row["max_abs_error"], 1e-4)
        self.assertIn("cpu", results["environment"])
        self.assertEqual(results["config"]["weights"], "random:0")
        self.assertEqual(sorted(os.listdir(self.folder)), ["out.json"])

    def test_config_compares_its_variants(self):
        config = {
            "model": str(GRAPHS / "small_ffnn.json.gz"),
            "weights": "random:0",
            "passes": {"off": "minimal", "on": "default"},
            "threads": 1,
            "measure": {"repeats": 3, "min_ms": 0},
        }
        path = self.write("mine.json", json.dumps(config))
        text = self.lathe("run", path)
        self.assertRegex(text, r"(?m)^'on' is \d")
        self.assertIn("agrees with the interpreter", text)
        rows = json.loads((self.folder / "results/mine.json").read_text())["rows"]
        self.assertEqual([row["variant"] for row in rows], ["off", "on"])
        self.assertLess(rows[1]["kernels"], rows[0]["kernels"])

    def test_lines_fit_eighty_columns(self):
        text = self.lathe(
            "run", "--model", GRAPHS / "small_ffnn.json.gz", "--weights", "random:0",
            "--measure", "repeats=3,min_ms=0", "--name", "narrow",
        )
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        self.assertNotIn("\x1b", text)

    # Errors.

    def test_a_name_leaves_no_folder(self):
        config = self.write("c.json", json.dumps(
            {"model": str(GRAPHS / "small_ffnn.json.gz"), "weights": "random:0",
             "name": "../../out"}))
        error = self.lathe("run", config, expect=2)
        self.assertIn("'name' is letters, digits, '.', '_' and '-'", error)
        self.assertFalse((self.folder.parent.parent / "out.json").exists())

    def test_a_path_ends_at_no_nul(self):
        config = self.write("c.json", json.dumps({"model": "m\0n"}))
        self.assertIn("the path 'm' goes on behind a NUL", self.lathe("run", config, expect=2))

    def test_a_full_disk_fails_the_command(self):
        for words in (["compile", GRAPHS / "small_ffnn.json.gz", "--emit=graph"], ["list", "ops"]):
            with self.subTest(words[0]), open("/dev/full", "w") as full:
                done = subprocess.run([LATHE, *map(str, words)], stdout=full,
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn("cannot write the output: No space left on device", done.stderr)

    def test_unknown_pass_is_shown_in_the_config(self):
        path = self.write(
            "mine.json", '{\n  "model": "m.pt2",\n  "passes": "default,-fuse_elementwise"\n}\n'
        )
        error = self.lathe("run", path, expect=2)
        self.assertRegex(error, r"mine\.json:3:23: error\[unknown-pass\]")
        self.assertIn('"passes": "default,-fuse_elementwise"', error)

    def test_mode_that_the_target_lacks(self):
        path = self.write(
            "mine.json",
            '{"model": "m.pt2",\n  "mode": "reduce-overhead",\n  "targets": ["cpu"]}',
        )
        error = self.lathe("run", path, expect=2)
        self.assertIn("mine.json:2:11", error)
        self.assertIn("mode 'reduce-overhead' is of launches that can be recorded", error)
        self.assertIn("expected 'default' or 'max-autotune'", error)

    def test_mode_that_measures_keeps_no_promise_of_bits(self):
        path = self.write(
            "mine.json",
            '{"model": "m.pt2",\n  "mode": "max-autotune",\n  "numerics": "strict"}',
        )
        error = self.lathe("run", path, expect=2)
        self.assertIn("mine.json:2:11", error)
        self.assertIn("'max-autotune' takes what is fastest here", error)

    def test_strict_where_no_bits_are_promised(self):
        for target, reason in [("cuda", "its libraries choose the order of sums"),
                               ("interp", "it computes in float64")]:
            path = self.write(
                "mine.json",
                f'{{"model": "m.pt2",\n  "numerics": "strict",\n  "targets": ["{target}"]}}',
            )
            error = self.lathe("run", path, expect=2)
            self.assertIn("mine.json:2:15", error)
            self.assertIn(f"numerics 'strict' is not there on target {target}", error)
            self.assertIn(reason, error)

    def test_strict_on_a_gpu_is_refused_by_every_command(self):
        model = self.write("relu.lathe", RELU)
        flags = [model, "--target", "cuda", "--numerics", "strict"]
        for words in [["compile", "--emit", "cuda"], ["opt"], ["opt", "--bisect", "check"],
                      ["explain"]]:
            error = self.lathe(words[0], *flags, *words[1:], expect=2)
            self.assertIn("numerics 'strict' is not there on target cuda", error)

    def test_unknown_key_names_the_near_one(self):
        path = self.write("mine.json", '{"modle": "m.pt2"}')
        error = self.lathe("run", path, expect=2)
        self.assertRegex(error, r"mine\.json:1:2: error\[unknown-key\].*did you mean 'mode")

    def test_missing_files(self):
        self.assertIn("missing-file", self.lathe("run", "nowhere.json", expect=2))
        error = self.lathe("run", "--model", "nowhere.pt2", expect=2)
        self.assertIn("command line:1:", error)
        self.assertIn("nowhere.pt2", error)
        self.assertEqual(os.listdir(self.folder), [])

    def test_missing_weights_name_the_way_out(self):
        error = self.lathe("run", "--model", GRAPHS / "small_ffnn.json.gz", expect=2)
        self.assertIn("missing-weight", error)

    def test_unknown_flag_and_command(self):
        self.assertIn("did you mean '--threads'", self.lathe("run", "--thread", "1", expect=2))
        self.assertIn("did you mean 'run'", self.lathe("rnu", expect=2))

    def test_broken_model_is_the_users_error(self):
        path = self.write("broken.pt2", "PK\x03\x04 nothing else")
        self.lathe("run", "--model", path, expect=2)
        path = self.write("broken.json", '{"graph_module": 3}')
        self.lathe("run", "--model", path, expect=2)

    # Programs as text.

    def test_a_program_runs_as_the_graph_it_was_lowered_from(self):
        graph = self.write("twice.lathe", RELU)
        self.lathe("compile", graph, "--emit=loops", "-o", "program.lathe")
        text = self.lathe("run", "program.lathe", "--save-outputs", "program.npz")
        self.assertRegex(text, r"1 launch of 1 kernel, interpreted")
        self.assertRegex(text, r'%\d+ "y": f32\[4\] = \[\S+, \S+, \S+, \S+\]')
        self.lathe(
            "run", "--model", graph, "--save-outputs", "graph.npz", "--json", "out.json",
            "--measure", "repeats=1,min_ms=0",
        )
        files = [zipfile.ZipFile(self.folder / f"{name}.npz") for name in ("program", "graph")]
        self.assertEqual(files[0].read("0.npy"), files[1].read("0.npy"))

    def test_a_program_is_verified_and_printed_again(self):
        path = self.write("mine.lathe", PROGRAM)
        self.assertEqual(self.lathe("compile", path, "--emit=loops"), PROGRAM)
        self.assertIn("a program, verified: 1 launch of 1 kernel", self.lathe("compile", path))
        error = self.lathe("compile", path, "--emit=graph", expect=2)
        self.assertIn("is a program, which has no graph left", error)

    def test_weights_and_inputs_of_a_program_are_given(self):
        path = self.write("mine.lathe", PROGRAM)
        self.assertIn("expected --weights random:SEED", self.lathe("run", path, expect=2))
        first = self.lathe("run", path, "--weights", "random:0")
        self.assertNotEqual(first, self.lathe("run", path, "--weights", "random:1"))
        other = self.lathe("run", path, "--weights", "random:0", "--inputs", "random:1")
        self.assertNotEqual(first, other)
        self.lathe("run", path, "--weights", "random:0", "--save-outputs", "y.npz")
        again = self.lathe("run", path, "--weights", "random:0", "--inputs", "y.npz")
        self.assertNotEqual(first, again)
        self.assertIn("no-such.npz", self.lathe(
            "run", path, "--weights", "random:0", "--inputs", "no-such.npz", expect=2))

    def test_a_program_leaves_only_the_interpreter(self):
        path = self.write("mine.lathe", PROGRAM)
        for words in [["run", "--targets", "cpu"], ["run", "--passes", "default"],
                      ["run", "--json", "out.json"], ["compile", "--target", "wasm"],
                      ["opt", "--isa", "avx2"]]:
            error = self.lathe(words[0], path, *words[1:], expect=2)
            self.assertIn(f"error[bad-value]: {words[1]} says how a graph becomes a program", error)
        for what in ("llvm", "asm", "object", "cuda", "wasm"):
            error = self.lathe("compile", path, "--emit", what, expect=2)
            self.assertIn(f"--emit of a program is loops, got '{what}'", error)

    def test_commands_that_take_graphs_say_that_it_is_a_program(self):
        path = self.write("mine.lathe", PROGRAM)
        config = self.write("study.json", json.dumps({"model": str(path)}))
        for words in [["explain", path], ["run", config]]:
            error = self.lathe(*words, expect=2)
            self.assertRegex(error, r"mine\.lathe:1:1: error\[bad-form\]: the text is a program")
            self.assertIn("expected a graph", error)

    def test_passes_of_programs_run_on_them(self):
        path = self.write("mine.lathe", PROGRAM)
        self.assertEqual(self.lathe("opt", path, "--passes=plan_memory"), PROGRAM)
        error = self.lathe("opt", path, "--passes=plan_memory,cse", expect=2)
        self.assertIn("'cse' works on graphs, and", error)
        self.assertIn("on programs works --passes=plan_memory", error)
        self.assertIn("works on graphs", self.lathe("opt", path, expect=2))
        error = self.lathe("opt", path, "--passes=plan_memory", "--bisect=check", expect=2)
        self.assertIn("--bisect starts from a graph", error)

    def test_a_wrong_program_is_refused_at_its_line(self):
        for old, new, line, message in [
            ("f32[4], 16 bytes\n  %1", "f32[4], 12 bytes\n  %1", 2, "less than its type"),
            ("kernel @scale(%0, %1, %2)", "kernel @scale(%0, %1, %3)", 6, "does not exist"),
            ("kernel @scale(%0, %1, %2)", "kernel @scale(%2, %1, %2)", 6, "before it is written"),
            ("kernel @scale(%0, %1, %2)", "kernel @scale(%0, %1, %0)", 6, "writes buffer"),
            ("%y: f32[4] out", "%y: f32[5] out", 6, "needs 5 elements"),
            ("%y: f32[4] out", "%y: f16[4] out", 12, "f16"),
            ("load %x[%i] *", "load %x[%j] *", 12, "%j"),
            ("program @main(%0)", "program @main(%9)", 1, "does not exist"),
        ]:
            with self.subTest(new):
                path = self.write("wrong.lathe", PROGRAM.replace(old, new, 1))
                for command in ("run", "compile", "opt"):
                    error = self.lathe(command, path, expect=2)
                    self.assertRegex(error, rf"wrong\.lathe:{line}:\d+: error\[[a-z-]+\]: ")
                    self.assertIn(message, error)

    def test_what_a_program_does_wrong_while_it_runs_is_told_at_its_kernel(self):
        beyond = self.write("beyond.lathe", PROGRAM.replace("%x[%i]", "%x[%i + 1]"))
        error = self.lathe("run", beyond, "--weights", "random:0", expect=2)
        self.assertRegex(error, r"beyond\.lathe:10:1: error\[bad-value\].*load of element 4 of")
        self.assertIn("--inputs FILE.npz gives others", error)
        path = self.write("mine.lathe", PROGRAM)
        error = self.lathe("run", path, "--weights", "random:0", "--max-steps", "10", expect=2)
        self.assertRegex(error, r"mine\.lathe:10:1: error\[too-large\].*more than 10 steps")
        error = self.lathe("run", "--model", self.write("g.lathe", RELU), "--max-steps", "1",
                           expect=2)
        self.assertIn("--max-steps is of a program's text", error)

    def test_bisection_goes_on_to_programs(self):
        path = self.write("twice.lathe", RELU)
        passes = ["--passes=functionalize,cse,lower_to_loops,plan_memory"]
        text = self.lathe("opt", path, *passes, "--bisect=check")
        self.assertIn("no step is to blame", text)
        # cse leaves one launch of relu; the command wants both.
        script = self.write("both.sh", "#!/bin/sh\n[ $(grep -c 'kernel @relu_0(' \"$1\") = 3 ]\n")
        script.chmod(0o755)
        text = self.lathe("opt", path, *passes, f"--bisect={script}", expect=1)
        self.assertIn("cse#1 is to blame", text)

    # Other commands.

    def test_opt_prints_the_result(self):
        path = self.write("twice.lathe", RELU)
        text = self.lathe("opt", path, "--passes=cse")
        self.assertEqual(text.count("relu("), 1)
        self.assertIn("return", text)

    def test_opt_shows_what_a_pass_did(self):
        path = self.write("twice.lathe", RELU)
        text = self.lathe("opt", path, "--passes=cse,dce", "--diff")
        self.assertIn("cse", text)
        self.assertIn("  - %b = relu(%x)", text)

    def test_opt_reads_back_what_it_prints(self):
        path = self.write("twice.lathe", RELU)
        text = self.lathe("opt", path, "--passes=cse")
        again = self.lathe("opt", self.write("again.lathe", text), "--passes=cse")
        self.assertEqual(text, again)

    def test_opt_points_at_a_mistake_in_the_text(self):
        path = self.write("bad.lathe", RELU.replace("relu(%x)", "rleu(%x)", 1))
        error = self.lathe("opt", path, "--passes=cse", expect=2)
        self.assertRegex(error, r"bad\.lathe:2:\d+: error\[unknown-op\]")
        self.assertIn("did you mean", error)

    def test_opt_bisects_by_the_interpreter(self):
        path = self.write("twice.lathe", RELU)
        text = self.lathe("opt", path, "--passes=cse,dce", "--bisect=check")
        self.assertIn("no step is to blame", text)

    def test_compile_emits_every_stage(self):
        path = self.write("twice.lathe", RELU)
        words = {"graph": "func @main", "loops": "kernel", "llvm": "define", "asm": "ret"}
        for stage, word in words.items():
            self.assertIn(word, self.lathe("compile", path, f"--emit={stage}"), stage)
        self.lathe("compile", path, "--emit=object", "-o", "out.o")
        self.assertEqual((self.folder / "out.o").read_bytes()[:4], b"\x7fELF")
        self.assertIn("did you mean 'loops'", self.lathe("compile", path, "--emit=loop", expect=2))

    def test_explain_names_kernels_and_lines(self):
        text = self.lathe("explain", GRAPHS / "attention_block.json.gz", "--threads", "1")
        self.assertIn("kernels", text)
        self.assertIn("small_models.py:", text)

    def test_explain_says_which_sizes_a_graph_is_for(self):
        path = self.write("guarded.lathe", "dim s0 in [1, 64] hint 8\nguard s0 % 4 == 0\n" + RELU)
        self.assertIn("only for  s0 % 4 == 0\n", self.lathe("explain", path))
        error = self.lathe("explain", path, "--dims", "s0=6", expect=2)
        self.assertIn("with s0 = 6: the graph is only for sizes with s0 % 4 == 0", error)

    def test_explain_has_a_formula_for_every_size(self):
        text = """dim s0 in [1, 64] hint 8
func @main(%x: f32[s0, 8]) -> f32[s0, 8] {
  %w = constant() {name = "w", dtype = f32, shape = [8, 8]}
  %y = matmul(%x, %w)
  %z = softmax(%y) {dim = -1}
  return %z
}
"""
        path = self.write("formulas.lathe", text)
        # Packed weights are as wide as the vectors of the instruction set.
        words = [path, "--threads", "1", "--weights", "random:0", "--isa", "avx2"]
        self.assertNotIn("at every size", self.lathe("explain", *words))
        words += ["--dynamic", "true", "--dims", "s0=16"]
        told = [" ".join(line.split()) for line in self.lathe("explain", *words).splitlines()]
        self.assertIn("in all; here at s0 = 16", told)
        self.assertIn("matmul 128*s0 2.0 k 64*s0 + 256 1.3 kB", told)
        self.assertIn("peak memory 32*s0 = 512 B, planned in 512 B", told)
        formulas = json.loads(self.lathe("explain", *words, "--json"))["formulas"]
        self.assertEqual(formulas["alive"], ["32*s0"])
        self.assertIn({"flops": "128*s0", "bytes": "64*s0 + 256"}, formulas["launches"])

    def test_explain_of_a_kept_program_has_its_kinds_and_lines_and_guesses_no_rivals(self):
        text = """func @main(%x: f32[8, 16], %w: f32[16, 16]) -> f32[8, 16] {
  %y = matmul(%x, %w)
  %z = relu(%y)
  return %z
}
"""
        path = self.write("kept.lathe", text)
        words = ["explain", path, "--threads", "1", "--cache", "true"]
        made, kept = (self.lathe(*words, "--choices") for _ in range(2))
        self.assertRegex(made, r"matmul_relu +contraction .*\n    not loops")
        self.assertRegex(kept, r"matmul_relu +contraction ")
        self.assertNotIn("no other kind", kept)
        self.assertIn("kept.lathe:2", self.lathe(*words))

    def test_explain_says_who_needs_a_guard(self):
        text = """dim s0 in [1, 64] hint 8
dim s1 hint 4
guard s0 % 4 == 0 because "a branch"
func @main(%x: f32[3, s0], %y: f32[2*s1, 5]) -> f32[3, 5] {
  %z = matmul(%x, %y)
  return %z
}
"""
        path = self.write("product.lathe", text)
        table = self.lathe("explain", path, "--guards")
        said = [" ".join(line.split()) for line in table.splitlines()]
        self.assertIn("1 <= s0 <= 64 the file its range; here 8", said)
        self.assertIn("s0 % 4 == 0 the file product.lathe:3 a branch", said)
        demanded = "s0 == 2*s1 collect_guards product.lathe:5 'matmul' needs equal inner dims"
        self.assertIn(demanded, said)
        error = self.lathe("explain", path, "--guards", "--dims", "s0=12", expect=2)
        self.assertIn("product.lathe:5", error)
        self.assertIn("with s0 = 12, s1 = 4: the graph is only for sizes with s0 == 2*s1", error)
        error = self.lathe("run", "--model", path, "--dims", "s0=12", expect=2)
        self.assertIn("s0 == 2*s1 ('matmul' needs equal inner dims)", error)
        error = self.lathe("run", "--model", path, "--dims", "s0=68,s1=34", expect=2)
        self.assertIn("input 'x' must have 1 to 64 in dim 1 (s0), got 68", error)

    def test_explain_names_guards_as_pytorch_does(self):
        guarded = self.lathe("explain", FIXTURES / "guarded.pt2", "--guards")
        self.assertIn("    2 <= L['x'].size()[0]\n", guarded)
        tokens = "L['batch']['tokens'][0].size()[1]"
        self.assertIn(f"Ne(s58, s77 + 1): {tokens} != L['x'].size()[0] + 1\n", guarded)
        self.assertRegex(guarded, r"checked in \d+\.\d ns; stays: the file's")

    def test_explain_says_what_dropping_a_guard_costs(self):
        text = """dim s0 in [1, 64] hint 4
dim s1 in [1, 64] hint 4
func @main(%x: f32[s0, 8], %y: f32[s1, 8]) -> f32[s0, 8], f32[s1, 8] {
  %a = relu(%x)
  %b = exp(%y)
  return %a, %b
}
"""
        path = self.write("merged.lathe", text)
        passes = 'merge_symbols,collect_guards{assume="s0 <= 32"},default'
        words = [path, "--guards", "--threads", "1", "--passes", passes]
        told = json.loads(self.lathe("explain", *words, "--json"))
        guards = {guard["text"]: guard for guard in told["guards"]}
        merged = guards["s1 == s0"]
        self.assertEqual(merged["torch"], "Eq(s1, s0)")
        self.assertEqual(merged["source"], "L['y'].size()[0] == L['x'].size()[0]")
        self.assertEqual(merged["found_by"], "merge_symbols")
        for text in ("s1 == s0", "s0 <= 32"):
            without = guards[text]["without"]
            self.assertGreater(without["without_ms"], 0)
            self.assertLessEqual(without["low"], without["ratio"])
            self.assertNotIn("stays", guards[text])
        self.assertIn("the file's", guards["1 <= s0 <= 64"]["stays"])
        self.assertGreater(told["check_ns"], 0)
        self.assertRegex(self.lathe("explain", *words), r"without it \S+ \S+ instead of \S+ \S+: ")

    def test_explain_and_opt_tell_choices_in_the_same_words(self):
        path = GRAPHS / "small_ffnn.json.gz"
        told = json.loads(self.lathe("explain", path, "--json", "--threads", "1"))["launches"]
        report = json.loads(self.lathe("opt", path, "--passes=default", "--json"))
        chosen = [choice for each in report["passes"] for choice in each.get("choices", [])]
        self.assertTrue(told and chosen)
        for row in told:
            self.assertLessEqual({"label", "seconds", "predicted", "limit", "bound"}, set(row))
        for row in told + chosen:
            self.assertLessEqual({"region", "plan", "forced", "candidates"}, set(row))
            for candidate in row["candidates"]:
                verdict = {"why_not"} if "why_not" in candidate else {"predicted", "force"}
                self.assertEqual(set(candidate), {"plan", *verdict})

    def test_doctor_and_list(self):
        self.assertIn("cpu", self.lathe("doctor"))
        self.assertIn("default", self.lathe("list", "passes"))
        self.assertIn("relu", self.lathe("list", "ops"))

    def test_kept_programs_are_listed_with_their_keys(self):
        self.assertIn("0 programs in ", self.lathe("list", "programs"))
        model = self.write("m.lathe", RELU)
        self.lathe("compile", model, "--cache", "true", "--threads", "1")
        listed = self.lathe("list", "programs")
        self.assertRegex(listed, r"m-[0-9a-f]{16}\.program  ")
        self.assertIn("\n  threads: 1\n", listed)
        self.assertIn("\n  passes: default\n", listed)
        self.assertIn("1 program in ", listed)
        (kept,) = (self.folder / "cache/lathe/programs").iterdir()
        kept.write_bytes(b"torn")
        self.assertIn("no program, or of another version", self.lathe("list", "programs"))


if __name__ == "__main__":
    unittest.main()
