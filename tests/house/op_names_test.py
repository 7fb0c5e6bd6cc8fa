"""House test: an op that the code names is in the table; a name that no op has never matches."""

import pathlib
import re
import subprocess
import unittest

import tree

LATHE = pathlib.Path("frontend/cli/lathe").resolve()

# Where C++ names an op, and the folders in which it means one there. Lists are called k...Ops.
NAME = r'"(\w+)"'
PLACES = {
    rf"op(?:_)?->name [!=]= {NAME}": "",
    rf"\bop [!=]= {NAME}": "passes",
    rf"\b(?:is_op|match_scalar|take_one_plus)\([^\"]*?, {NAME}": "passes",
    rf"\bops\.find\({NAME}": "",
    rf"\bb(?:uilder)?\.call\({NAME}": "",
    rf"\bapply\({NAME}": "ir/op",
    rf"\{{{NAME.replace('(', '(?:')}, {NAME},\s*(?:\"|\w+,)": "passes/rules",
    r"\bk\w+Ops\[\] = \{([^}]*)\}": "",
}


def table():
    lines = subprocess.run([LATHE, "list", "ops"], text=True, capture_output=True, check=True)
    return {line.split()[0] for line in lines.stdout.splitlines() if line[:1].isalpha()}


def code(path):
    return re.sub(r"//[^\n]*", "", tree.text(path))


class OpNamesTest(unittest.TestCase):
    def test_an_op_that_is_named_exists(self):
        ops = table()
        self.assertGreater(len(ops), 100)
        unknown = []
        for place, under in PLACES.items():
            number = 0
            for path in tree.files(*tree.CPP, under=under or "."):
                if path.parts[0] == "tests":
                    continue
                for match in re.finditer(place, code(path)):
                    for name in re.findall(r"\w+", match.group(1)):
                        number += 1
                        if name not in ops:
                            unknown.append(f"  {path}: '{name}'")
            self.assertGreater(number, 0, f"nothing is written as {place}")
        if unknown:
            rule = "rule: an op that the code names is in the table (`lathe list ops`)"
            self.fail("\n".join([rule, *unknown, "repair: write the op's own name"]))


if __name__ == "__main__":
    unittest.main()
