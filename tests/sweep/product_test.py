"""The jobs of a sweep: which combinations there are, and what their names depend on."""

import unittest

import sweeps
from lathe.sweep import environment, jobs, product, spec


class ProductTest(unittest.TestCase):
    def expand(self, **changes):
        folder = sweeps.SweepFolder(self, ["raises"], **changes)
        return jobs.expand(spec.read(folder.path)[1])

    def settings(self, *keys, **changes):
        """What jobs have of some settings, in order."""
        return [tuple(j["settings"][k] for k in keys) for j in self.expand(**changes)]

    def test_every_combination_is_a_job(self):
        found = self.settings("backend", "batch", "dynamic", backends=["aot_eager", "inductor"],
                              batch=[1, 2], dynamic=[None, True, False])
        self.assertEqual(len(set(found)), 12)

    def test_modes_and_options_stand_beside_each_other_and_never_together(self):
        found = self.settings("mode", "options", backends=["inductor"], modes=[None, "default"],
                              options=[{"max_autotune": True}])
        self.assertEqual(found, [(None, {}), ("default", {}), (None, {"max_autotune": True})])

    def test_what_a_backend_does_not_know_is_no_second_job(self):
        found = self.settings("backend", "mode", "dynamic", "fullgraph", modes=["lite", "default"],
                              dynamic=[True, False], fullgraph=[True], backends=["eager"])
        self.assertEqual(found, [("eager", None, None, False)])

    def test_exclude_takes_out_what_has_a_value_of_every_list(self):
        found = self.settings("batch", "threads", batch=[1, 2, 3], threads=[1, 2],
                              exclude=[{"batch": [2, 3], "threads": [2], "models": ["*raises*"]}])
        self.assertEqual(found, [(1, 1), (1, 2), (2, 1), (3, 1)])

    def test_exclude_tells_true_from_one(self):
        found = self.settings("dynamic", backends=["aot_eager"], dynamic=[True, None],
                              exclude=[{"dynamic": [True]}])
        self.assertEqual(found, [(None,)])

    def test_include_adds_a_product_that_exclude_leaves_alone(self):
        found = self.settings("batch", "mode", backends=["inductor"], batch=[1, 2],
                              modes=["default"], exclude=[{"batch": [2]}],
                              include=[{"batch": [2, 4], "modes": ["lite"]}])
        self.assertEqual(found, [(1, "default"), (2, "lite"), (4, "lite")])

    def test_a_candidate_is_not_measured_against_itself(self):
        found = self.settings("backend", "against", backends=["eager", "inductor"],
                              against=["eager", "inductor"])
        self.assertEqual(found, [("eager", ["inductor"]), ("inductor", ["eager"])])

    def test_a_job_is_named_after_all_that_its_figures_depend_on(self):
        names = {self.expand()[0]["job"]}
        for changes in ({"batch": [2]}, {"threads": [2]}, {"measure": {"samples": 3}},
                        {"backends": ["aot_eager"]}):
            names.add(self.expand(**changes)[0]["job"])
        self.assertEqual(len(names), 5)
        for changes in ({"title": "another"}, {"limits": {"seconds": 7}}, {"batch": [1, 2]}):
            self.assertIn(self.expand(**changes)[0]["job"], names)

    def test_titles_tell_jobs_apart(self):
        every = self.expand(backends=["inductor", "eager"], modes=[None, "lite"], batch=[1, 2],
                            dynamic=[None, True, False], fullgraph=[True, False], threads=[1, 2],
                            dtypes=["float32", "bfloat16"], targets=["cpu", "cuda"])
        titles = {product.title(job["settings"]) for job in every}
        self.assertEqual(len(titles), len(every))

    def test_an_environment_differs_by_machine_and_by_packages_that_matter(self):
        now = environment.describe()
        for changes, is_same in (
            ({"node": "another", "os": "Linux 0", "lathe": "0"}, True),
            ({"cpu": "another"}, False),
            ({"python": "2.7"}, False),
            ({"packages": now["packages"] | {"torch": "0"}}, False),
            ({"packages": now["packages"] | {"openvino": "0"}}, True),
        ):
            self.assertEqual(environment.is_same(now | changes, now, ["timm"]), is_same, changes)
        self.assertFalse(environment.is_same(
            now | {"packages": now["packages"] | {"timm": "0"}}, now, ["timm"]))
        self.assertFalse(environment.is_same(None, now, []))


if __name__ == "__main__":
    unittest.main()
