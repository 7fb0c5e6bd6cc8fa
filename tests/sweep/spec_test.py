"""Sweep files that are wrong: refused before any job starts, with the place and a near choice."""

import importlib.util
import unittest

import sweeps
from lathe.sweep import jobs, spec


class SpecTest(unittest.TestCase):
    def refused(self, text, **changes):
        """A sweep with changes is refused, and what is said matches."""
        folder = sweeps.SweepFolder(self, **{"models": ["file:raises.py:model"]} | changes)
        with self.assertRaisesRegex(spec.SpecError, text) as caught:
            spec.read(folder.path)
        return str(caught.exception)

    def test_a_wrong_value_is_told_with_its_place_and_the_nearest_choice(self):
        for text, changes in {
            r"at \$: unknown key 'modess'; did you mean 'modes'\?": {"modess": []},
            r"at \$.backends\[0\]: found \"inducter\", did you mean 'inductor'": {
                "backends": ["inducter"]},
            r"at \$.modes\[1\]: found \"max-autotun\", did you mean 'max-autotune'": {
                "modes": [None, "max-autotun"]},
            r"at \$.dtypes\[0\]: found \"float23\", did you mean 'float32'": {
                "dtypes": ["float23"]},
            r"at \$.targets\[0\]: found \"web\", expected one of cpu, cuda": {"targets": ["web"]},
            r"at \$.batch\[0\]: found 0, expected at least 1": {"batch": [0]},
            r"at \$.batch\[0\]: found true, expected integer": {"batch": [True]},
            r"at \$.threads: found 4, expected array": {"threads": 4},
            r"at \$.against\[0\]: found \"egaer\", did you mean 'eager'": {"against": ["egaer"]},
            r"at \$.against\[0\]: backend 'aot_eager' has no modes": {
                "against": ["aot_eager:default"]},
            r"at \$.limits.seconds: found 0, expected more than 0": {"limits": {"seconds": 0}},
            r"at \$.exclude\[0\]: no job is like": {"exclude": [{"models": ["vgg*"]}]},
            r"at \$.exclude: every job is taken out": {"exclude": [{"models": ["*"]}]},
            r"at \$.include\[0\].dynamic\[0\]: found \"yes\"": {"include": [{"dynamic": ["yes"]}]},
            r"at \$: 200000 combinations, expected at most 100000": {
                "batch": list(range(1, 501)), "threads": list(range(1, 401))},
        }.items():
            with self.subTest(text):
                self.refused(text, **changes)

    def test_a_wrong_model_is_told_with_the_nearest_one(self):
        for text, model in {
            "source \"torchvisoin\", did you mean 'torchvision'": "torchvisoin:resnet18",
            "no function 'ffn' in models.py; did you mean 'ffnn'": "ffn",
            "no function 'modell' in raises.py; did you mean 'model'": "file:raises.py:modell",
            "'file:raises.py' names no function: file:PATH.py:FUNCTION": "file:raises.py",
            "nothing.py is no file": "file:nothing.py:model",
            "nothing.pt2 is no file": "pt2:nothing.pt2",
            "'encoder' has no argument 'token'; did you mean 'tokens'": 'encoder{"token": 3}',
            "is no JSON object": "encoder{tokens: 3}",
        }.items():
            with self.subTest(model):
                self.assertIn("at $.models[0]: ", self.refused(text, models=[model]))

    def test_one_name_stands_for_one_model(self):
        two = [{"name": "a", "model": "ffnn", "arguments": {"rows": rows}} for rows in (1, 2)]
        self.refused("the name 'a' stands for another model, too", models=two)

    def test_all_that_is_wrong_is_told_at_once(self):
        told = self.refused("unknown key", modess=[], backends=["inducter"], batch=[0])
        self.assertEqual(len(told.splitlines()), 3)

    def test_an_option_that_inductor_lacks_is_refused(self):
        self.refused(r"at \$.options\[0\]: backend 'inductor' has no option 'max_autotun'; did you "
                     "mean 'max_autotune'", backends=["inductor"], options=[{"max_autotun": True}])

    def test_hostile_files_are_refused_in_one_line(self):
        folder = sweeps.SweepFolder(self, ["raises"])
        for data, text in {
            b"": ":1:1: error: expecting value",
            b'{"models": [,]}': ":1:13: error: expecting value",
            b'{"models": ["ffnn"], "models": ["ffnn"]}': "the key 'models' stands twice",
            b'{"limits": {"seconds": NaN}}': "NaN is no number of JSON",
            b"[" * 100_000: "recursion",
            b"\xff": "no UTF-8 at byte 0",
            b"[]": r"at \$: found \[\], expected object",
            b'{"models": [' + b"9" * 10_000 + b"]}": "digits",
        }.items():
            folder.path.write_bytes(data)
            with self.subTest(data[:20]), self.assertRaisesRegex(spec.SpecError, text):
                spec.read(folder.path)

    def test_the_command_ends_with_2_and_starts_nothing(self):
        folder = sweeps.SweepFolder(self, ["raises"], backends=["inducter"])
        code, out, errors = folder.run()
        self.assertEqual((code, out), (2, ""))
        self.assertNotIn("Traceback", errors)
        self.assertFalse(folder.results.parent.exists())
        folder.write(backends=["eager"])
        for flags, text in {
            ("--only", "*rases*"): "no job is like '*rases*'; the nearest is 'file:raises.py",
            ("--jobs", "0"): "'0' is no number from 1 to 1024",
            ("--engine", "cluster"): "invalid choice: 'cluster'",
        }.items():
            code, _, errors = folder.run(*flags)
            self.assertEqual(code, 2)
            self.assertIn(text, errors)

    def test_timed_jobs_are_not_run_side_by_side(self):
        folder = sweeps.SweepFolder(self, ["raises"], measure={"samples": 3})
        code, _, errors = folder.run("--jobs", "2")
        self.assertEqual(code, 2)
        self.assertIn("side by side they would disturb", errors)

    def test_the_checked_in_sweeps_have_only_names_that_exist_here(self):
        for path in sorted((sweeps.ROOT / "experiments/sweeps").glob("*.json")):
            with self.subTest(path.name):
                given = spec.load_json(path)
                here = [m for m in given["models"] if is_here(m)]
                given["models"] = here or ["ffnn"]  # the rest of the file is checked anyway
                folder = sweeps.SweepFolder(self, **given)
                self.assertGreater(len(jobs.expand(spec.read(folder.path)[1])), 0)


def is_here(model):
    """Whether a model's package is installed, which the tests do not ask for."""
    package, colon, _ = (model if isinstance(model, str) else model["model"]).partition(":")
    is_packaged = colon and package in ("torchvision", "timm", "transformers")
    return not is_packaged or importlib.util.find_spec(package) is not None


if __name__ == "__main__":
    unittest.main()
