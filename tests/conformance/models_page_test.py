"""MODELS.md is of the models that there are, and its figures are those of its rows."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, "frontend/python")

from lathe.conformance import models_page



def case(name, verdict="agrees", words="", suite="models", speedup=(1.0, 2.0, 3.0)):
    return {"kind": "case", "suite": suite, "name": name, "verdict": verdict, "words": words,
            "measured": {"speedup": list(speedup)}}


class ModelsPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = models_page.PAGE.read_text()
        cls.rows = models_page.rows_of(cls.text)

    def test_every_model_of_the_suite_has_its_row(self):
        rows = self.rows[models_page.SUITES["models"]]
        self.assertEqual(sorted(rows), sorted(models_page.models()))

    def test_every_graph_of_the_zoo_has_its_row(self):
        zoo = {path.name.split(".")[0] for path in pathlib.Path("tests/zoo").glob("*.aten.json.gz")}
        self.assertGreater(len(zoo), 20)
        self.assertEqual(set(self.rows[models_page.SUITES["zoo"]]), zoo)

    def test_the_figures_are_those_of_the_rows(self):
        rows = [cells for of in self.rows.values() for cells in of.values()]
        counts = [sum(cells[k] == "yes" for cells in rows) for k in range(3)]
        self.assertIn(f"Of {len(rows)} models {counts[0]} import, {counts[1]} compile and "
                      f"{counts[2]} agree", self.text)
        slower = sum(float(cells[3].split()[0]) < models_page.SLOWER for cells in rows if cells[3])
        self.assertIn(f"{slower} are slower", self.text)

    def test_the_readme_says_what_the_page_says(self):
        figure = re.search(r"Of (\d+) models .* (\d+) agree; they take 1/([\d.]+) of", self.text)
        readme = " ".join(pathlib.Path("README.md").read_text().split())
        found = re.findall(r"Of (\d+) models (\d+) agree, at ([\d.]+) times eager's speed", readme)
        self.assertEqual(found, [figure.groups()])

    def test_what_fails_says_at_which_step(self):
        page = models_page.page([
            case("a"), case("b", "refused", "LatheError: m.pt2: error[unsupported-op]: no | op"),
            case("c", "refused", "LatheError: m.pt2: error[too-large]: 4 TB"),
            case("d", "wrong", "result 0: 3 of 24"), case("e", "untraced", "a branch"),
            case("f", "crashed", "SIGSEGV")])
        rows = models_page.rows_of(page)[models_page.SUITES["models"]]
        self.assertEqual(rows["a"], ["yes", "yes", "yes", "2.00 (1.00 to 3.00)"])
        self.assertTrue(rows["b"][0].startswith("no: LatheError: m.pt2: error[unsupported-op]"))
        self.assertEqual(rows["b"][1:], ["", "", ""])
        self.assertEqual(rows["c"][0], "yes")
        self.assertTrue(rows["c"][1].startswith("no: "))
        self.assertEqual(rows["d"], ["yes", "yes", "wrong: result 0: 3 of 24", ""])
        self.assertTrue(rows["e"][0].startswith("PyTorch exports no graph"))
        self.assertEqual(rows["f"], ["yes", "yes", "crashed: SIGSEGV", ""])
        self.assertIn("Of 6 models 4 import, 3 compile and 1 agree", page)


if __name__ == "__main__":
    unittest.main()
