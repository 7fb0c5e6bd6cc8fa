"""House test 2: no file, function or line is longer than the rules in CONTRIBUTING.md say.

Limits are for reading, not for counting: a file over its limit hides a second idea. What must be
longer stands in sizes.txt with the reason.
"""

import pathlib
import re
import statistics
import unittest

import tree

LINE = 100  # columns
FUNCTION = 80
SOURCES = (".cpp", ".h", ".py", ".bzl", ".ts", ".tsx", ".js", ".css", ".html", ".sh")


def file_limit(path):
    """Hard limit in lines, or None where none is set."""
    name = path.as_posix()
    if name.startswith(("experiments/configs/", "experiments/graphs/", "tests/zoo/")):
        return None
    if path.name == "README.md":
        return 100 if path.parent.parts else None
    if path.suffix == ".lathe":
        return 200
    if name.startswith(("ir/ops/", "ir/composites/")):
        return 300
    if name.startswith("passes/rules/"):
        return 400
    if path.suffix == ".h":
        return 250
    return 600 if path.suffix in SOURCES else None


def functions(path):
    """(name, first line, number of lines) of every C++ function with a body of its own."""
    found, opened, start, header = [], [], 0, ""
    line = 1
    text = tree.code(path)
    for match in re.finditer(r"[{};\n]", text):
        header += text[start : match.start()]
        start, mark = match.end(), match.group()
        if mark == "\n":
            line += 1
            header += " "
            continue
        if mark == "{":
            opened.append((kind_of(header, opened), name_of(header), line))
        elif mark == "}" and opened:
            kind, name, first = opened.pop()
            if kind == "function":
                found.append((name, first, line - first + 1))
        header = ""
    return found


def kind_of(header, opened):
    if any(kind in ("function", "data") for kind, _, _ in opened):
        return "inner"
    if re.search(r"\bnamespace\b|extern \"\"", header):
        return "scope"
    if re.search(r"\b(class|struct|union|enum)\b[^()=]*$", header):
        return "scope"
    return "function" if re.search(r"\)[^=]*$", header) else "data"


def name_of(header):
    names = re.findall(r"([\w:~]+)\s*\(", header)
    return names[0] if names else header.strip()[:40]


def read_waivers():
    waivers = {}
    for line in tree.text("tests/house/sizes.txt").splitlines():
        if line.strip() and not line.startswith("#"):
            key, lines, why = [part.strip() for part in line.split("|")]
            waivers[key] = (int(lines), why)
    return waivers


class SizesTest(unittest.TestCase):
    waivers = read_waivers()

    def exceeds(self, key, lines, limit):
        return lines > max(limit, self.waivers.get(key, (0, ""))[0])

    def report(self, rule, repair, found):
        if found:
            self.fail("\n".join([f"rule: {rule}", *found, f"repair: {repair}"]))

    def test_files(self):
        found = []
        for path in tree.files():
            limit = file_limit(path)
            if limit is None:
                continue
            lines = tree.text(path).count("\n")
            if self.exceeds(path.as_posix(), lines, limit):
                found.append(f"  {path}: {lines} lines, at most {limit}")
        self.report("a file holds one idea", "split it by theme, not by length", found)

    def test_functions(self):
        found = []
        for path in tree.files(*tree.CPP):
            for name, first, lines in functions(path):
                if name.startswith("define_"):
                    continue  # a table: the row of an op or a pass
                if not self.exceeds(f"{path}:{name}", lines, FUNCTION):
                    continue
                found.append(f"  {path}:{first}: {name} has {lines} lines, at most {FUNCTION}")
        self.report("a function does one thing", "name its steps", found)

    def test_lines(self):
        found = []
        for path in tree.files(*SOURCES):
            for number, line in enumerate(tree.text(path).splitlines(), 1):
                if len(line) > LINE and "://" not in line:
                    found.append(f"  {path}:{number}: {len(line)} columns")
        self.report(f"a line has at most {LINE} columns", "clang-format-19 -i FILE", found)

    def test_the_tree_stays_made_of_small_files(self):
        lines = sorted(tree.text(p).count("\n") for p in tree.files(*tree.CPP))
        median, p90 = statistics.median(lines), lines[int(len(lines) * 0.9)]
        print(f"C++: {len(lines)} files, {sum(lines)} lines, median {median:.0f}, p90 {p90}")
        self.assertLessEqual(median, 150)
        self.assertLessEqual(p90, 400)

    def test_waivers_are_needed(self):
        sizes = {p.as_posix(): tree.text(p).count("\n") for p in tree.files()}
        for key in self.waivers:
            path = key.split(":")[0]
            self.assertIn(path, sizes, f"sizes.txt names {key}, which does not exist")
            if ":" not in key:
                limit = file_limit(pathlib.Path(path))
                self.assertGreater(sizes[path], limit, f"{key} no longer needs its waiver")


if __name__ == "__main__":
    unittest.main()
