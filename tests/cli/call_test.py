"""What a loaded model takes and gives, with NumPy's arrays; call_torch_test has tensors."""

import os
import pathlib
import sys
import unittest

os.environ["LATHE_LIBRARY"] = str(pathlib.Path("frontend/api/liblathe.so").resolve())
sys.path.insert(0, "frontend/python")

try:
    import numpy as np

    import lathe
except ImportError as error:
    raise unittest.SkipTest(f"needs numpy: {error}") from None

FIXTURES = pathlib.Path("tests/fixtures")


class Calls:
    """Tests of one kind of tensor: `tensor` makes one, `kind` is its class."""

    def load(self, name):
        return lathe.load(FIXTURES / f"{name}.pt2", threads=1)

    def row(self, start, count=3):
        return self.tensor(np.arange(start, start + count, dtype=np.float32))

    def matrices(self):
        values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
        return [self.tensor(value) for value in values]

    def expect(self, value, expected):
        self.assertIsInstance(value, self.kind)
        np.testing.assert_allclose(np.asarray(value), np.asarray(expected))

    def test_positional_and_keyword_arguments_are_one(self):
        model = self.load("mutated_inputs")
        results = []
        for call in (
            lambda x, y: model(x, y),
            lambda x, y: model(x, y=y),
            lambda x, y: model(y=y, x=x),
        ):
            x, y = self.matrices()
            results.append(call(x, y))
            self.expect(results[-1], x + y)
        for result in results[1:]:
            self.expect(result, results[0])

    def test_each_call_gives_memory_of_its_own(self):
        model = self.load("int_argument")
        first = model(self.row(0, 4), 5)[0]
        second = model(self.row(7, 4), 5)[0]
        self.expect(first[:, 0], self.row(0, 4))
        self.expect(second[:, 0], self.row(7, 4))

    def test_nested_arguments_and_results(self):
        model = self.load("nested")
        a, b, w, c, left, right = (self.row(i) for i in range(6))
        for result in (
            model((a, b), {"w": w, "list": [1, c]}, point=(left, right)),
            model([a, b], {"list": (1, c), "w": w}, (left, right)),
        ):
            total = a + b * w - c
            self.assertEqual(list(result), ["sum", "point", "rest", 3, "text", "half"])
            self.expect(result["sum"], total)
            self.expect(result["point"][0], right)
            self.expect(result["point"][1], left + total)
            self.assertEqual(result["rest"][:2], [None, 7])
            self.expect(result["rest"][2][1], a)
            self.assertEqual([result[k] for k in (3, "text", "half")], [3, "done", 0.5])

    def test_a_wrong_nesting_says_where(self):
        model = self.load("nested")
        a, table = self.row(0), {"w": self.row(1), "list": [1, self.row(2)]}
        for args, message in (
            (((a,), table), r"the arguments\[0\]\[0\]: expected 2 values, got 1"),
            (((a, a), {}), r"the arguments\[0\]\[1\]: expected a dict with .*'list'.*, got \[\]"),
            (((a, a), 5), r"the arguments\[0\]\[1\]: expected a dict with .*, got int"),
            (((a, a), {**table, "list": [1]}), r"\[0\]\[1\]\[\d\]: expected 2 values, got 1"),
            (((a, a),), r"the arguments\[0\]: expected 2 values, got 1"),
            (((a, 5), table), "'pair_1' is a tensor, got int"),
            (((a, a), {**table, "list": [2, a]}), "'table_list_0' was exported as 1, got 2"),
        ):
            with self.subTest(message), self.assertRaisesRegex(lathe.LatheError, message):
                model(*args, point=(a, a))

    def test_unknown_and_repeated_arguments(self):
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        for args, kwargs, message in (
            ((x,), {}, r"the arguments\[0\]: expected 2 values, got 1"),
            ((x, y, y), {}, r"the arguments\[0\]: expected 2 values, got 3"),
            ((x, y), {"y": y}, r"the arguments\[1\]: expected a dict with the keys \[\], got"),
            ((x,), {"z": y}, r"the arguments\[0\]: expected 2 values, got 1"),
        ):
            with self.subTest(message), self.assertRaisesRegex(lathe.LatheError, message):
                model(*args, **kwargs)

    def test_what_does_not_fit_is_named(self):
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        for wrong, found in (
            (y[:1], r"float32\[1, 3\]"),
            (y[0], r"float32\[3\]"),
            (y > 0, r"bool\[2, 3\]"),
        ):
            expected = rf"^input 1 \('y'\) is float32\[2, 3\], got {found}$"
            with self.subTest(found), self.assertRaisesRegex(lathe.LatheError, expected):
                model(x, wrong)
        self.expect(model(x, y), x + y)  # the next call is none the worse

    def test_mutated_inputs_that_are_not_contiguous_are_changed_too(self):
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        expected = model(x, y)
        plain, wide = self.matrices(), self.tensor(np.zeros((2, 6), np.float32))
        strided = wide[:, ::2]
        strided[...] = plain[0]
        transposed = self.tensor(np.zeros((3, 2), np.float32)).T
        transposed[...] = plain[1]
        self.expect(model(strided, transposed), expected)
        self.expect(strided, x)
        self.expect(transposed, y)
        self.assertEqual(float(wide[:, 1::2].sum()), 0)

    def test_sizes_that_change_between_calls(self):
        model = self.load("int_argument")
        for size, count in ((4, 5), (2, 3), (4, 3), (4, 5)):
            table, following, found = model(self.row(1, size), count)
            self.assertEqual(tuple(table.shape), (size, count))
            self.assertEqual((following, found), (count + 1, size))
            self.expect(table[:, -1], self.row(1, size))


class NumPyTest(Calls, unittest.TestCase):
    kind = np.ndarray

    def tensor(self, array):
        return np.array(array)

    def test_memory_that_cannot_be_written(self):
        model = self.load("int_argument")
        x = self.row(0, 4)
        x.flags.writeable = False
        self.expect(model(x, 5)[0][:, 0], x)

    def test_subclasses_are_read_and_changed_in_place(self):
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        masked = np.ma.array(x.copy(), mask=np.eye(2, 3))
        self.expect(model(masked, y), masked.data + y)
        np.testing.assert_array_equal(masked.mask, np.eye(2, 3))


if __name__ == "__main__":
    unittest.main()
