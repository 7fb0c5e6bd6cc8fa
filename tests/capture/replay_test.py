"""lathe.capture.replay: guards as data, asked without PyTorch."""

import pathlib
import sys
import tempfile
import time
import unittest

sys.path[:0] = ["frontend/python", "tests/capture"]

from bundle_text import guard, tensor, write  # noqa: E402
from lathe import LatheError  # noqa: E402
from lathe.capture import guards, recompiles, replay  # noqa: E402
from lathe.capture.conditions import holds  # noqa: E402


def x_of(*size, **rest):
    return {"x": {"dtype": "float32", "size": list(size), **rest}}


TEXT = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None       # _dynamo/output_graph.py:1 in f
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x'), type=<class 'a'>
| | +- TENSOR_MATCH: check_tensor(L['x'], size=[8])  # y = x + 1  # mine/m.py:9 in forward
| | +- NO_TENSOR_ALIASING
| +- GuardManager: source=G, accessed_by=GlobalsGuardAccessor
| | +- GuardManager: source=G['f'], accessed_by=DictGetItemGuardAccessor('f')
| | | +- ID_MATCH: ___check_obj_id(G['f'], 7)  # f(x)  # mine/m.py:10 in forward
+- LAMBDA_GUARD: 2 <= L['x'].size()[0]  # y = x + 1  # mine/m.py:9 in forward
what nobody foresaw
Guard latency = 12.50 us
"""


class GuardsTest(unittest.TestCase):
    def test_rows_keep_kind_source_code_line_and_place(self):
        rows = guards.parse(guards.text_of(TEXT))
        self.assertEqual([row["kind"] for row in rows],
                         ["DEFAULT_DEVICE", "TENSOR_MATCH", "NO_TENSOR_ALIASING", "ID_MATCH",
                          "LAMBDA_GUARD", "other"])
        self.assertEqual([row["source"] for row in rows],
                         ["", "L['x']", "L['x']", "G['f']", "", ""])
        self.assertEqual(rows[1]["code"], "check_tensor(L['x'], size=[8])")
        self.assertEqual((rows[4]["line"], rows[4]["place"]),
                         ("y = x + 1", "mine/m.py:9 in forward"))
        self.assertEqual((rows[0]["line"], rows[0]["place"]),
                         ("", "_dynamo/output_graph.py:1 in f"))
        self.assertEqual(rows[5]["code"], "what nobody foresaw")


class ConditionsTest(unittest.TestCase):
    VALUES = {
        "L['x']": {"dtype": "float32", "size": [8, 3], "stride": [3, 1]},
        "L['n']": 3,
        "L['f']": 2.5,
        "L['none']": None,
        "L['xs']": [1, [2, 3]],
        "L['d']": {"dict": {"q": 4}},
        "L['y'][0]": 5,
    }

    def test_knows_the_arithmetic_of_guards(self):
        for code in ["L['x'].size()[0] == 8", "2 <= L['x'].size()[1]", "L['x'].stride()[0] == 3",
                     "((2*L['x'].size()[0]) % 4) == 0", "L['x'].size()[0] // 3 == 2",
                     "L['n'] == 3 and L['f'] > 2", "not math.isnan(L['f'])", "L['none'] is None",
                     "L['x'] is not None", "len(L['xs']) == 2", "L['xs'][1][0] == 2",
                     "L['d']['q'] == 4", "L['y'][0] == 5", "max(L['n'], 4) == 4",
                     "2 <= L['n'] <= 3", "len(L['d']) == 1", "2**L['n'] == 8"]:
            with self.subTest(code):
                self.assertIs(holds(code, self.VALUES), True)
                self.assertIs(holds(f"not ({code})", self.VALUES), False)

    def test_says_when_it_does_not_know(self):
        for code in ["L['gone'] == 3", "L['x'].numel() == 3", "L['n'] is L['n']", "f(L['n'])",
                     "L['x'] == 3", "G['a'] == 3", "hasattr(L['x'], 'a') == False", "L['n'] ==",
                     "L['xs'][9] == 1", "L['n'] / 0 == 1", "(lambda: 1)()", "[1][0] == 1",
                     "__import__('os')", "L['n'].__class__", "", "'a' * 9 == ''"]:
            with self.subTest(code):
                self.assertIsNone(holds(code, self.VALUES))

    def test_a_side_that_decides_needs_no_other(self):
        self.assertIs(holds("L['n'] == 3 or L['gone'] == 1", self.VALUES), True)
        self.assertIs(holds("L['gone'] == 1 and L['n'] == 4", self.VALUES), False)
        self.assertIsNone(holds("L['gone'] == 1 or L['n'] == 4", self.VALUES))

    def test_hostile_code_takes_no_time(self):
        begin = time.monotonic()
        for code in ["9**9**9**9 == 1", "(" * 5000 + ")" * 5000, "-" * 10000 + "1",
                     "1+" * 9000 + "1", "1" * 10**6, "10**4000 * " * 1000 + "1 == 1",
                     "not " * 4000 + "1", "\0", "[" * 99]:
            self.assertIn(holds(code, self.VALUES), (None, True, False))
        self.assertLess(time.monotonic() - begin, 5)


class ReplayTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "b"

    def test_names_every_guard_that_fails_of_every_compilation(self):
        write(self.folder, [
            [tensor("L['x']", [8, 4], [4, 1]), guard("L['n'] == 3", "EQUALS_MATCH", "L['n']")],
            [tensor("L['x']", [None, 4], [4, 1]), guard("L['x'].size()[0] % 2 == 0"),
             guard("2 <= L['x'].size()[0]")],
        ])
        found = replay(self.folder, [{**x_of(8, 4), "n": 3}, {**x_of(7, 4), "n": 5},
                                     {**x_of(1, 4, dtype="float16")}])
        self.assertEqual((found[0].graph, found[0].is_compiled), ("0_1", False))
        self.assertTrue(found[1].is_recompile and found[1].is_derived)
        self.assertEqual(found[1].reasons, {
            "0/1": ["x.size()[0] % 2 == 0"],
            "0/0": ["tensor 'x' size mismatch at index 0. expected 8, actual 7", "n == 3"],
        })
        self.assertIn("tensor 'x' dtype mismatch. expected Float, actual Half",
                      found[2].reasons["0/0"])

    def test_a_size_that_changed_becomes_a_symbol(self):
        write(self.folder, [[tensor("L['x']", [8, 4], [4, 1])]])
        found = replay(self.folder, [x_of(9, 4), x_of(10, 4), x_of(1, 4), x_of(1, 4), x_of(11, 4)])
        self.assertEqual([p.graph for p in found], ["0_1", "0_1", "0_2", "0_2", "0_1"])
        self.assertEqual([p.is_recompile for p in found], [True, False, True, False, False])
        self.assertEqual(found[2].reasons["0/1"], ["2 <= x.size()[0]"])

    def test_without_dynamic_each_size_is_compiled_until_the_limit(self):
        write(self.folder, [[tensor("L['x']", [8, 4], [4, 1])]], dynamic=False, limit=3)
        found = replay(self.folder, [x_of(n, 4) for n in (9, 10, 11, 8)])
        self.assertEqual([p.graph for p in found], ["0_1", "0_2", None, "0_0"])
        self.assertIn("eager: the limit of recompiles is reached", str(found[2]))

    def test_cold_replays_the_captured_calls(self):
        calls = [{"call": i, "visits": [{"frame": 0, "values": {"L['n']": n}}]}
                 for i, n in enumerate([3, 3, 4])]
        write(self.folder, [[guard("L['n'] == 3")], [guard("L['n'] == 4")]], calls=calls)
        found = replay(self.folder, cold=True)
        self.assertEqual([p.is_compiled for p in found], [True, False, True])
        self.assertEqual([p.is_recompile for p in found], [False, False, True])
        self.assertFalse(any(p.is_derived for p in found))

    def test_counts_what_it_took_for_granted(self):
        write(self.folder, [[guard("___check_obj_id(L['self'], 12)", "ID_MATCH", "L['self']"),
                             guard("L['y'].size()[0] == 2")]])
        self.assertEqual([p.assumed for p in replay(self.folder, [{}])], [2])

    def test_refuses_traces_and_bundles_that_are_none(self):
        write(self.folder, [[guard("L['n'] == 3")]])
        for calls, words in [([3], "call 0 is a dict of arguments or a list of visits, got int"),
                             ([[{"frame": 7, "values": {}}]], "frame 7, which has no guards"),
                             ([[{"frame": 0}]], "a visit of call 0 is"),
                             ([[{"frame": "0", "values": {}}]], "frame '0', a number")]:
            with self.subTest(words), self.assertRaisesRegex(LatheError, words):
                replay(self.folder, calls)
        for name, text, words in [
            ("calls.jsonl", "3", "is no JSON object"),
            ("guards/0_0.json", '{"a": 1}', "is no list of guards"),
            ("guards/0_0.json", "[" * 100_000, "is no JSON"),
            ("manifest.json", '{"format": "zip"}', "'format' is 'zip', expected 'lathe-bundle'"),
            ("manifest.json", '{"format": "lathe-bundle", "version": 9}', "version 9"),
            ("manifest.json", "", "is no JSON"),
        ]:
            (self.folder / name).write_text(text)
            with self.subTest(words), self.assertRaisesRegex(LatheError, words):
                replay(self.folder)
        with self.assertRaisesRegex(LatheError, "has no 'manifest.json'"):
            replay(self.folder.parent / "nothing")

    def test_wrong_guards_are_taken_to_hold_not_run(self):
        codes = ("", "L['x']", "check_tensor(L['x'], size=3)", "L['x'].__class__()",
                 "check_tensor(L['x'], torch.f, size=[1], stride=[1], requires_grad=[])")
        rows = [guard(code, kind, "L['x']") for code in codes
                for kind in ("TENSOR_MATCH", "TYPE_MATCH", "EQUALS_MATCH")]
        write(self.folder, [[*rows, {}, {"kind": 3, "source": [], "code": {}}]])
        self.assertEqual([p.graph for p in replay(self.folder, [x_of(1)])], ["0_0"])

    def test_values_of_any_kind_crash_nothing(self):
        write(self.folder, [[tensor("L['x']", [8, 4], [4, 1]), guard("L['x'].size()[0] == 8"),
                             guard("___check_type_id(L['x'], 1), type=<class 'int'>", "TYPE_MATCH",
                                   "L['x']")]])
        for value in (None, 3, "a", [], {}, {"size": []}, {"size": 3}, {"size": ["a", None]},
                      {"dtype": 3, "size": [8, 4]}, {"type": "a.b"}, {"dict": {}}, True, 1.5,
                      {"size": [8, 4], "stride": "no"}, {"dispatch_keys": 3, "size": [1, 1]}):
            with self.subTest(value):
                try:
                    found = replay(self.folder, [{"x": value}, {"x": value}])
                except LatheError as error:
                    self.assertRegex(str(error), r"call 0: L\['x'\]: '\w+' is a (list|text)")
                else:
                    self.assertEqual(len(found), 2)


class CausesTest(unittest.TestCase):
    def test_what_follows_a_change_in_a_call_has_its_cause(self):
        told = [
            (0, 1, "0/0: tensor 'x' dtype mismatch. expected Float, actual Double"),
            (2, 1, "2/0: tensor 'h' dtype mismatch. expected Float, actual Double"),
            (3, 1, "3/0: n == 3     # x * n  # m.py:1 in f\nUser stack trace:\n  ..."),
            (0, 2, "0/1: tensor 'x' dtype mismatch. expected Double, actual Half"),
        ]
        rows = [{"frame": f, "compile": 1, "call": c, "reasons": [r]} for f, c, r in told]
        found = recompiles.with_causes(rows, 0)
        self.assertEqual([row["cause"] for row in found], [0, 0, 2, 3])
        self.assertEqual(found[2]["reason"], "n == 3")

    def test_a_reason_names_the_innermost_line_of_its_stack(self):
        reason = ('0/0: n == 3    # return x * n  # m.py:2 in g\nUser stack trace:\n'
                  '  File "m.py", line 9, in f\n    return g(x, n)\n'
                  '  File "m.py", line 2, in g\n    return x * n')
        rows = [{"frame": 0, "compile": i, "call": i, "reasons": [text]}
                for i, text in enumerate([reason, "0/0: tensor 'x' rank mismatch"], 1)]
        named, unnamed = recompiles.with_causes(rows, 0)
        self.assertEqual((named["file"], named["line"], named["code"]), ("m.py", 2, "return x * n"))
        self.assertNotIn("line", unnamed)


if __name__ == "__main__":
    unittest.main()
