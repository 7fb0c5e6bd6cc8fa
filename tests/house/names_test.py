"""House test 3: a thing has one name: in its row, its file, its test; and files name a concept."""

import pathlib
import re
import unittest

import tree

FORBIDDEN = re.compile(r"(^|_)(util|utils|misc|common|helpers?|stuff)(_|$)")
MACROS = 5
TODO_PER_1000_LINES = 0.5


def defined_names(path):
    """The rows a file of ops or passes defines."""
    return re.findall(r'\.name\s*=\s*"(\w+)"\s*[,}]', tree.text(path))


def pass_files():
    return [p for p in tree.files(".cpp", under="passes") if p.parent.as_posix() == "passes"]


class NamesTest(unittest.TestCase):
    def report(self, rule, repair, found):
        if found:
            self.fail("\n".join([f"rule: {rule}", *found, f"repair: {repair}"]))

    def test_passes(self):
        found = []
        for path in pass_files():
            row = re.search(rf"PassDef define_{path.stem}\(\)", tree.text(path))
            # Options have names too; the pass's own comes first.
            names = defined_names(path)
            if not row or not names or names[0] != path.stem:
                found.append(f"  {path} does not define the pass '{path.stem}'")
            test = pathlib.Path("tests/passes", path.stem + ".lathe")
            if not (tree.ROOT / test).exists():
                found.append(f"  {test} is missing: what does the pass do, and when not?")
        self.report("a pass, its file and its test share one name", "rename or add it", found)

    def test_pass_tests(self):
        stems = {p.stem for p in pass_files()}
        found = []
        for path in tree.files(".lathe", under="tests/passes"):
            if path.stem.split(".")[0] not in stems:
                found.append(f"  {path} is named after no pass")
        self.report("a test of a pass is named after it", "rename it to PASS.lathe", found)

    def test_ops(self):
        found = []
        for path in tree.files(".cpp", under="ir/ops"):
            names = defined_names(path)
            if not re.search(rf"define_{path.stem}\(\)", tree.text(path)):
                if names:
                    found.append(f"  {path} does not define define_{path.stem}()")
            elif re.search(r"\.name = (\"\w+\" \+|[^\"])", tree.text(path)):
                continue  # a family: its rows differ in a name and a formula
            elif len(names) == 1 and names[0] != path.stem:
                found.append(f"  {path} holds the one op '{names[0]}'")
        self.report("an op file is named after its op, or its family", "rename the file", found)

    def test_files_name_a_concept(self):
        found = [
            f"  {path}"
            for path in tree.files()
            if any(FORBIDDEN.search(part) for part in [*path.parent.parts, path.stem])
        ]
        self.report("no file is named util, misc, common, helpers or stuff", "name the idea", found)

    def test_files_are_snake_case(self):
        found = []
        for path in tree.files(*tree.CPP, ".py", ".lathe"):
            if not re.fullmatch(r"[a-z0-9_]+", path.stem.split(".")[0].replace("-", "_")):
                found.append(f"  {path}")
        self.report("files are named in snake_case", "rename it", found)

    def test_codes_of_diagnostics(self):
        codes = re.findall(r'"([a-z-]+)"', tree.text("ir/support/diag_codes.h"))
        found = []
        for path in tree.files(".lathe", under="tests/diagnostics"):
            if not any(path.stem.startswith(code.replace("-", "_")) for code in codes):
                found.append(f"  {path} begins with no code of ir/support/diag_codes.h")
        self.report("a test of a diagnostic is named after its code", "rename it", found)

    def test_macros(self):
        macros = {}
        for path in tree.files(*tree.CPP):
            if path.as_posix().startswith("frontend/api/"):
                continue  # a C header for other languages has no other means
            for name in re.findall(r"^\s*#\s*define\s+(\w+)", tree.code(path), re.M):
                macros.setdefault(name, path)
        found = [f"  {path}: {name}" for name, path in macros.items() if name[:6] != "LATHE_"]
        self.report("a macro is named LATHE_*", "use a function, a constant or a template", found)
        self.assertLessEqual(len(macros), MACROS, f"too many macros: {sorted(macros)}")

    def test_todos(self):
        lines, todos = 0, []
        for path in tree.files(*tree.CPP, ".py"):
            if path.parts[:2] == ("tests", "house"):
                continue
            text = tree.text(path)
            lines += text.count("\n")
            todos += [f"  {path}" for _ in re.findall(r"\b(TODO|FIXME|XXX)\b", text)]
        if len(todos) > lines * TODO_PER_1000_LINES / 1000:
            self.report("at most one TODO in 2,000 lines", "do it", todos)


if __name__ == "__main__":
    unittest.main()
