"""What a loaded model takes and gives, with NumPy's arrays; call_torch_test has tensors.

Calls go through the extension here, and through ctypes in call_ctypes_test.
"""

import ctypes
import gc
import os
import pathlib
import resource
import sys
import tempfile
import threading
import types
import unittest

os.environ["LATHE_LIBRARY"] = str(pathlib.Path("frontend/api/liblathe.so").resolve())
EXTENSION = pathlib.Path("frontend/python/_call.abi3.so").resolve()
os.environ.setdefault("LATHE_EXTENSION", str(EXTENSION))
sys.path.insert(0, "frontend/python")

try:
    import numpy as np

    import lathe
except ImportError as error:
    raise unittest.SkipTest(f"needs numpy: {error}") from None

from lathe import _handle  # noqa: E402

FIXTURES = pathlib.Path("tests/fixtures")
LAYOUTS = "func @main(%x: f32[4, 3], %y: f32[3]) -> f32[4, 3] {\n  %z = sub(%x, %y)\n  return %z\n}"
# What stands between the products is in the handle's memory.
POWERS = """func @main(%x: f32[96, 96]) -> f32[96, 96] {
  %a = matmul(%x, %x)
  %b = matmul(%a, %x)
  %c = matmul(%b, %x)
  return %c
}
"""
DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def letter(dtype):
    """As .lathe text has it: f32, u8."""
    return dtype[0] + dtype.lstrip("uintfloa")


def resident_kb():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 10


class Calls:
    """Tests of one kind of tensor: `tensor` makes one, `kind` is its class."""

    def load(self, name):
        return lathe.load(FIXTURES / f"{name}.pt2", threads=1)

    def text(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "m.lathe")
            path.write_text(text)
            return lathe.load(path, threads=1)

    def doubled(self, type_text):
        """A model of one input and one output."""
        return self.text(
            f"func @main(%x: {type_text}) -> {type_text} {{\n  %y = add(%x, %x)\n  return %y\n}}"
        )

    def test_a_model_without_inputs(self):
        model = self.text("func @main() -> i64[3] {\n  %y = arange() {end = 3}\n  return %y\n}")
        for _ in range(3):
            self.assertEqual(model().tolist(), [0, 1, 2])

    def take_the_short_way(self, model):
        """Further calls of `model` fail where the extension leaves them to Python."""
        if os.environ["LATHE_EXTENSION"] != "none":
            model.call = lambda *args, **kwargs: self.fail("the call went through Python")

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

    def views(self):
        """A matrix of 4 x 3 in every layout, and what it means."""
        base = self.tensor(np.arange(400, dtype=np.float32))
        wide = base.reshape(20, 20)
        row, one = base[5:8].reshape(1, 3), base[8:10].reshape(1, 2)
        return {
            "plain": base[:12].reshape(4, 3),
            "offset": base[7:19].reshape(4, 3),
            "window": wide[3:7, 5:8],
            "transposed": base[3:15].reshape(3, 4).T,
            "steps": wide[2:18:4, 1:10:3],
            "column of one": wide[2:6, 7:8].reshape(4, 1)[:, :1] + base[:3],
            "repeated rows": self.repeated(row, (4, 3)),
            "repeated": self.repeated(one[:, :1], (4, 3)),
        }

    def test_every_layout_is_read_as_it_means(self):
        model = self.text(LAYOUTS)
        for name, view in self.views().items():
            with self.subTest(name):
                for _ in range(2):
                    y = self.row(2)
                    self.expect(model(view, y), np.asarray(view) - np.asarray(y))

    def test_every_dtype(self):
        for dtype in DTYPES:
            for size in (1, 3, 17):
                with self.subTest(dtype, size=size):
                    x = self.tensor(np.arange(size).astype(dtype))
                    model = self.doubled(f"{letter(dtype)}[{size}]")
                    for _ in range(2):
                        result = model(x)
                        self.expect(result, x + x)
                        self.assertEqual(result.dtype, x.dtype)
        model = self.text(
            "func @main(%x: bool[3]) -> bool[3] {\n  %y = logical_not(%x)\n  return %y\n}"
        )
        x = self.tensor(np.array([True, False, True]))
        for _ in range(2):
            self.expect(model(x), ~np.asarray(x))

    def test_tensors_without_elements_or_without_dims(self):
        for shape in ((), (0,), (0, 3), (3, 0), (1,), (1, 1)):
            with self.subTest(shape):
                model = self.doubled(f"f32[{', '.join(map(str, shape))}]")
                x = self.tensor(np.full(shape, 3, np.float32))
                for _ in range(2):
                    result = model(x)
                    self.assertEqual(tuple(result.shape), shape)
                    self.expect(result, x + x)

    def test_many_tensors(self):
        for count in (1, 8, 9, 40):
            names = [f"%x{i}" for i in range(count)]
            sums = [f"  %s{i} = add(%s{i - 1}, %x{i})" for i in range(1, count)]
            lines = "\n".join(["  %s0 = add(%x0, %x0)", *sums])
            model = self.text(
                f"func @main({', '.join(f'{n}: f32[3]' for n in names)}) -> f32[3] {{\n{lines}\n"
                f"  return %s{count - 1}\n}}"
            )
            rows = [self.row(i) for i in range(count)]
            for _ in range(2):
                self.expect(model(*rows), sum(rows) + rows[0])
            with self.assertRaisesRegex(lathe.LatheError, f"^expected {count} tensors, got 0$"):
                model()

    def test_threads_share_a_model(self):
        model = self.text(POWERS)
        xs = [self.tensor(np.full((96, 96), i / 96, np.float32)) for i in range(1, 5)]
        wrong = []

        def work(x, expected):
            for i in range(100):
                given = x if i % 3 else self.reordered(x)
                if not np.array_equal(np.asarray(model(given)), expected):
                    wrong.append(i)

        self.together(work, [(x, np.asarray(model(x))) for x in xs])
        self.assertEqual(wrong, [])

    def together(self, work, arguments):
        threads = [threading.Thread(target=work, args=each) for each in arguments]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_threads_share_a_model_of_any_size(self):
        model = self.load("int_argument")
        wrong = []

        def work(size):
            for count in range(1, 30):
                table, following, _ = model(self.row(size, size), count % 5 + 2)
                if tuple(table.shape) != (size, count % 5 + 2) or following != count % 5 + 3:
                    wrong.append((size, count))

        self.together(work, [(2,), (3,)])
        self.assertEqual(wrong, [])

    def test_what_fits_goes_the_short_way(self):
        model = self.text(LAYOUTS)
        x, y = self.views()["plain"], self.row(0)
        model(x, y)
        self.take_the_short_way(model)
        for name in ("plain", "offset"):
            view = self.views()[name]
            self.expect(model(view, y), np.asarray(view) - np.asarray(y))
            self.assertGreater(model.last_run_ms, 0)

    def test_sizes_and_mutations_go_the_short_way(self):
        model = self.load("int_argument")
        for size, count in ((4, 5), (2, 3)):
            model(self.row(1, size), count)
        self.take_the_short_way(model)
        for size, count in ((4, 5), (2, 3), (4, 5)):
            table, following, found = model(self.row(1, size), count)
            self.assertEqual((following, found), (count + 1, size))
            self.expect(table[:, -1], self.row(1, size))
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        result = model(x, y)
        self.take_the_short_way(model)
        again = self.matrices()
        self.expect(model(*again), result)
        self.expect(again[0], x)
        self.expect(again[1], y)

    def test_a_child_goes_on(self):
        model = self.text(LAYOUTS)
        x, y = self.views()["plain"], self.row(0)
        expected = np.asarray(model(x, y))
        child = os.fork()
        if child == 0:
            same = all(np.array_equal(np.asarray(model(x, y)), expected) for _ in range(3))
            os._exit(0 if same else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_calls_keep_nothing(self):
        model = self.text(LAYOUTS)
        wide = self.views()["plain"]
        narrow, y = wide[:, :2], self.row(0)
        shared = [wide, narrow, y, model, None, np.ndarray, type(y), np.float32, lathe.LatheError]

        def calls(count):
            for _ in range(count):
                model(wide, y)
            for _ in range(count // 100):
                with self.assertRaises(lathe.LatheError):
                    model(narrow, y)

        calls(10_000)
        gc.collect()
        before, kb = [sys.getrefcount(x) for x in shared], resident_kb()
        calls(100_000)
        gc.collect()
        for x, count in zip(shared, before):
            self.assertLess(abs(sys.getrefcount(x) - count), 50, type(x))
        self.assertLess(resident_kb() - kb, 4 << 10)

    def test_a_model_that_nobody_has_is_freed(self):
        before = None
        for i in range(60):
            model = self.doubled("f32[1000, 100]")
            model(self.tensor(np.zeros((1000, 100), np.float32)))
            del model
            gc.collect() if i % 10 == 0 else None
            if i == 20:
                before = resident_kb()
        self.assertLess(resident_kb() - before, 24 << 10)

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

    def repeated(self, array, shape):
        return np.broadcast_to(array, shape)

    def reordered(self, array):
        return np.asfortranarray(array)

    def test_calls_go_through_what_was_asked_for(self):
        asked = os.environ["LATHE_EXTENSION"]
        expected = "ctypes: LATHE_EXTENSION is 'none'" if asked == "none" else f"extension {asked}"
        self.assertIn(expected, lathe.calls_through)

    def test_a_failure_inside_is_raised(self):
        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        def run(model, inputs, outputs):
            self.assertEqual(model, 7)
            return inputs

        @ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
        def error(model):
            return b"error[some]: it failed\n"

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def free(model):
            freed.append(model)

        freed = []
        library = types.SimpleNamespace(
            lathe_run=run, lathe_error=error, lathe_free=free, lathe_set_stream=error,
            lathe_last_run_ms=error,
        )  # fmt: skip
        handle = _handle.open_handle(library, 7, False)
        for status, kind in ((2, lathe.LatheError), (3, lathe.LatheError), (4, MemoryError)):
            with self.assertRaisesRegex(kind, r"^error\[some\]: it failed$"):
                handle.run(0, 0, status, 1, 0)
        self.assertEqual(freed, [])
        del handle
        self.assertEqual(freed, [7])

    def test_views_that_go_backwards(self):
        model = self.text(LAYOUTS)
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        for view in (x[::-1, :3], x[:, 5:2:-1], x[::-1, ::-2]):
            for y in (self.row(0), self.row(0)[::-1]):
                self.expect(model(view, y), view - y)

    def test_another_byte_order_does_not_fit(self):
        model = self.doubled("f32[3]")
        x = self.row(0)
        self.expect(model(x), x + x)
        with self.assertRaisesRegex(lathe.LatheError, r"is float32\[3\], got >f4\[3\]"):
            model(x.astype(">f4"))

    def test_memory_that_cannot_be_written_is_not_changed(self):
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        self.expect(model(x, y), x + y)
        kept = y.copy()
        y.flags.writeable = False
        with self.assertRaisesRegex(lathe.LatheError, "^'y' is changed .*, but cannot be written$"):
            model(x, y)
        np.testing.assert_array_equal(y, kept)

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
