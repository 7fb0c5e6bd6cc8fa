"""Whether ops.py times every row of the table."""

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path("tests/bench").resolve()))

import op_cases  # noqa: E402


class Ops(unittest.TestCase):
    def test_every_row_has_a_call_or_a_reason(self):
        listed = subprocess.run(["frontend/cli/lathe", "list", "ops"], check=True, text=True,
                                capture_output=True).stdout
        rows = {line.split()[0] for line in listed.splitlines()
                if line[:1].isalpha() and len(line.split()) > 1}
        known = set(op_cases.ROWS) | set(op_cases.NO_CALL)
        self.assertEqual(sorted(rows - known), [], "has no entry in tests/bench/op_cases.py")
        self.assertEqual(sorted(known - rows), [], "stands in op_cases.py, and is no row")
        self.assertEqual(set(op_cases.ROWS) & set(op_cases.NO_CALL), set())

    def test_every_call_has_its_operands(self):
        for name, calls in {**op_cases.ROWS, **op_cases.COMPOSITES}.items():
            for text, operands in calls:
                code = compile(text, name, "eval")
                used = [n for n in code.co_names if len(n) == 1 and n in "abcdefgh"]
                self.assertEqual(sorted(set(used) & set("abcdefgh"[len(operands):])), [], text)


if __name__ == "__main__":
    unittest.main()
