"""The page of conformance: every number leads to its cases, and nothing of a file runs."""

import pathlib
import re
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, "frontend/python")
sys.path.insert(0, "tests/tools")

import chromium
from conformance_runs import case, many, run, timed
from lathe.report.conformance import page, run_file, summary

HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(2)>", "</script><b>",
           "{{ 7 * 7 }}", "<!--", "'; rm -rf $HOME; '", "`id`", "$(id)", "why:0 suite:ops",
           "</title><svg onload=alert(5)>", "\u2028\u202e\x00", "100%25%zz"]


def html(*runs):
    read = [run_file.from_records(pathlib.Path(f"r{i}.jsonl"), records, [])
            for i, records in enumerate(runs)]
    return page.html(summary.compare(read))


def hostile():
    return [run(*(case(bad, i, verdict, bad, bad, bad, bad)
                  for i, bad in enumerate(HOSTILE) for verdict in ("wrong", bad)),
                backend=backend, options={backend: backend}) for backend in HOSTILE[:3]]


class HtmlTest(unittest.TestCase):
    def test_nothing_of_the_file_becomes_markup(self):
        text = html(*hostile())
        self.assertNotIn("<img", text)
        self.assertNotIn("49", re.findall(r"<title>.*?</title>", text)[0])
        self.assertEqual(len(re.findall(r"<script", text)), 2)
        self.assertEqual(len(re.findall(r"</script", text)), 2)
        self.assertNotIn("<svg onload", text)

    def test_the_page_asks_for_no_other_file(self):
        text = html(many(30, 3), many(30, 3, "inductor"))
        self.assertIn("default-src 'none'", text)
        for address in re.findall(r"""(?:src|href)=["']([^"']*)""", text):
            self.assertTrue(address.startswith("#"), address)

    def test_verdicts_of_each_run_stand_in_one_row_each(self):
        text = html(run(case("a", 0), case("b", 0, "wrong", "x")),
                    run(case("a", 0), backend="inductor"))
        body = text[text.index('class="suites"'):text.index("A number leads")]
        rows = [re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", row)).strip()
                for row in re.findall(r"<tr>.*?</tr>", body, re.S)[1:]]
        self.assertRegex(rows[0], r"^ops every sample .* f32 lathe 50.0 % 2 1 0 0 0 0$")
        self.assertRegex(rows[1], r"^inductor 100 % 1 0 0 0 0 0$")


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.small = cls.write("small", html(many(30, 4, every=3), many(33, 4, "inductor", every=5)))
        cls.browser = cls.enterClassContext(chromium.Chromium())

    @classmethod
    def write(cls, name, text):
        path = cls.folder / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        return path

    def find(self, evaluate, query):
        """How many cases an address finds."""
        evaluate(f"location.hash = '#find={query}'; new Promise((done) => setTimeout(done, 50))")
        return int(evaluate("document.getElementById('shown').textContent").split()[0]
                   .replace(",", ""))

    def test_every_number_leads_to_so_many_cases(self):
        evaluate = self.browser.open(self.small)
        links = evaluate("""[...document.querySelectorAll('td a')].map((link) =>
            [link.textContent, link.getAttribute('href')])""")
        counted = [(int(text.replace(",", "")), href) for text, href in links
                   if re.fullmatch(r"[\d,]+", text)]
        self.assertGreater(len(counted), 30)
        for number, href in counted:
            self.assertEqual(self.find(evaluate, href.removeprefix("#find=")), number, href)
        for text, href in links:
            if not text.isdigit():
                self.assertGreater(self.find(evaluate, href.removeprefix("#find=")), 0, href)

    def test_the_address_of_a_case_opens_it(self):
        query = urllib.parse.quote("suite:ops name:op.3 dtype:bf16 case:0")
        evaluate = self.browser.open(self.small.resolve().as_uri() + f"#find={query}")
        text = evaluate("document.querySelector('td.detail').textContent")
        for words in ("op.3 in bf16, number 0", "('float32[3, 0]', {'dim': 0})",
                      "--backend lathe --suite ops --dtypes bf16 --only '^op.3$'",
                      "--backend inductor"):
            self.assertIn(words, text)
        link = evaluate("document.querySelector('td.detail a').getAttribute('href')")
        self.assertEqual(urllib.parse.unquote(link), "#find=suite:ops name:op.3 dtype:bf16 case:0")

    def test_twenty_thousand_cases_open_in_a_second(self):
        large = self.write("large", html(many(1000, 20), many(1000, 20, "inductor", 41)))
        times = [self.browser.loading_seconds(large) for _ in range(3)]
        print("20,000 cases, seconds until loaded:",
              ", ".join(f"{wall:.2f} ({busy:.2f} busy)" for wall, busy in times))
        self.assertLess(min(busy for _, busy in times), 1)
        evaluate = self.browser.open(large)
        self.assertEqual(self.find(evaluate, "case:20"), 0)
        self.assertEqual(self.find(evaluate, "case:19%20name:op.999"), 1)
        self.assertEqual(self.find(evaluate, ""), 20_000)
        self.assertEqual(evaluate("document.querySelectorAll('#rows tbody tr').length"), 200)
        evaluate("document.getElementById('more').click()")
        self.assertEqual(evaluate("document.querySelectorAll('#rows tbody tr').length"), 400)

    def test_hostile_text_runs_nothing_and_no_shell_command(self):
        path = self.write("hostile", html(*hostile()))
        evaluate = self.browser.open(path)
        self.find(evaluate, "")
        evaluate("document.querySelectorAll('#rows button').forEach((b) => b.click())")
        self.assertEqual(self.browser.problems(), [])
        self.assertEqual(evaluate("document.querySelectorAll('img, b b').length"), 0)
        self.assertIn("<script>alert(1)</script>", evaluate("document.body.textContent"))
        self.assertNotIn("python -m lathe.conformance --backend",
                         evaluate("document.getElementById('rows').textContent"))

    def test_a_name_is_a_pattern_that_a_shell_leaves_alone(self):
        path = self.write("quotes", html(run(case("'; rm -rf $HOME; '", 0))))
        evaluate = self.browser.open(path)
        self.find(evaluate, "case:0")
        self.assertIn("--only '^...rm.-rf..HOME...$'",
                      evaluate("document.querySelector('td.detail').textContent"))

    def test_a_case_that_was_timed_says_how_fast_it_is(self):
        path = self.write("timed", html(run(timed("resnet", [1.5, 2, 2.5]), timed("vgg", "fast"))))
        for name, there in (("resnet", True), ("vgg", False)):
            evaluate = self.browser.open(path.resolve().as_uri() + f"#find=name:{name}")
            text = evaluate("document.querySelector('td.detail').textContent")
            self.assertEqual("2.00x as fast as eager (1.50x to 2.50x" in text, there, text)

    def test_narrow_screens_do_not_scroll_sideways(self):
        evaluate = self.browser.open(self.small, width=390, height=800)
        self.find(evaluate, "case:0")
        self.assertLessEqual(evaluate("document.documentElement.scrollWidth"), 390)

    def test_all_that_can_be_done_takes_no_mouse(self):
        evaluate = self.browser.open(self.small)
        self.find(evaluate, "")
        places = "th button, td button, .wide, summary, a, input, #more"
        self.assertEqual(evaluate(f"""[...document.querySelectorAll('{places}')]
            .filter((element) => element.tabIndex < 0).length"""), 0)


if __name__ == "__main__":
    unittest.main()
