"""The rule by which an answer is eager's."""

import math
import sys
import unittest

sys.path.insert(0, "frontend/python")

import torch  # noqa: E402

from lathe.sweep import accuracy  # noqa: E402

TOLERANCE = 1e-4


def nothing():
    return None


class AccuracyTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.eager = torch.randn(2000)

    def compare(self, answer, eager=None, exact=nothing):
        return accuracy.compare(answer, self.eager if eager is None else eager, exact, TOLERANCE)

    def test_what_is_close_passes_and_asks_for_no_float64(self):
        def never():
            raise AssertionError

        found, why = self.compare(self.eager + 5e-5, exact=never)
        self.assertIsNone(why)
        self.assertEqual(found["rule"], "close")
        self.assertAlmostEqual(found["max_abs"], 5e-5, places=6)
        self.assertAlmostEqual(found["max_rel"], 5e-5 / self.eager.abs().max().item(), places=6)

    def test_what_is_as_near_to_float64_as_eager_passes(self):
        noise = torch.randn(2000)
        exact = self.eager.double()
        eager, answer = self.eager + 1e-2 * noise, self.eager - 1e-2 * noise
        found, why = self.compare(answer, eager, lambda: exact)
        self.assertIsNone(why)
        self.assertEqual(found["rule"], "root mean square against float64")

    def test_what_is_farther_from_float64_than_twice_eager_fails(self):
        noise = torch.randn(2000)
        exact = self.eager.double()
        answer = self.eager - 2.2e-2 * noise
        _, why = self.compare(answer, self.eager + 1e-2 * noise, lambda: exact)
        self.assertRegex(why, "output 0: error 0.02.* against float64, allowed 0.0")

    def test_few_numbers_may_be_farther(self):
        noise, few = torch.randn(100), self.eager[:100]
        answer, exact = few - 2.2e-2 * noise, few.double()
        _, why = self.compare(answer, few + 1e-2 * noise, lambda: exact)
        self.assertIsNone(why)

    def test_without_float64_the_cosine_decides(self):
        self.assertIsNone(self.compare(self.eager * 1.5)[1])
        _, why = self.compare(self.eager.flip(0))
        self.assertRegex(why, "cosine with eager's .*, expected at least 0.99")

    def test_nan_in_one_place_fails_and_the_same_nan_passes(self):
        broken = self.eager.clone()
        broken[7] = math.nan
        self.assertIsNotNone(self.compare(broken)[1])
        self.assertIsNotNone(self.compare(broken, exact=self.eager.double)[1])
        self.assertIsNone(self.compare(broken, broken.clone())[1])

    def test_zeros_are_not_near_to_anything_else(self):
        self.assertIsNotNone(self.compare(torch.zeros(2000))[1])
        self.assertIsNone(self.compare(torch.zeros(2000), torch.zeros(2000))[1])

    def test_integers_and_booleans_must_be_equal(self):
        ones = torch.ones(5, dtype=torch.int64)
        self.assertIsNone(self.compare(ones, ones.clone())[1])
        self.assertEqual(self.compare(ones * 2, ones)[1],
                         "output 0: 5 integers differ from eager's")
        self.assertIsNotNone(self.compare(ones.bool(), ~ones.bool())[1])

    def test_another_dtype_shape_or_number_of_outputs_fails(self):
        self.assertIn("dtype torch.float64", self.compare(self.eager.double())[1])
        self.assertIn("shape [1, 2000]", self.compare(self.eager[None])[1])
        self.assertEqual(self.compare((self.eager, self.eager))[1],
                         "2 tensors came out, eager gives 1")

    def test_nested_results_are_compared_leaf_by_leaf(self):
        wrong = {"a": [self.eager], "b": (-self.eager,)}
        right = {"a": [self.eager], "b": (self.eager,)}
        self.assertRegex(self.compare(wrong, right)[1], "^output 1: ")

    def test_halves_are_allowed_more_than_float32(self):
        self.assertEqual(accuracy.tolerance_of("file", "float32"), 1e-4)
        self.assertEqual(accuracy.tolerance_of("file", "bfloat16"), 1e-3)
        self.assertEqual(accuracy.tolerance_of("timm", "float32"), 1e-3)

    def test_complex_and_empty_results_are_compared(self):
        z = torch.complex(self.eager, -self.eager)
        self.assertIsNone(self.compare(z, z.clone())[1])
        self.assertIsNotNone(self.compare(z.conj().resolve_conj(), z)[1])
        self.assertIsNone(self.compare(torch.empty(0, 3), torch.empty(0, 3))[1])


if __name__ == "__main__":
    unittest.main()
