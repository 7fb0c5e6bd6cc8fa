"""What a loaded model takes and gives, with PyTorch's tensors."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/cli").resolve()))

from call_test import Calls, lathe, np  # noqa: E402


class TorchTest(Calls, unittest.TestCase):
    kind = torch.Tensor

    def tensor(self, array):
        return torch.from_numpy(np.array(array))

    def test_arrays_among_tensors(self):
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        for pair in ((x, y.numpy()), (x.numpy(), y)):
            self.expect(model(*pair), x + y)
        with self.assertRaisesRegex(lathe.LatheError, r"input 1 .* got float64\[2, 3\]"):
            model(x, y.double().numpy())

    def test_parameters_and_the_default_device(self):
        model = self.load("int_argument")
        x = self.row(0, 4)
        with torch.device("meta"):
            table = model(torch.nn.Parameter(x), 5)[0]
        self.assertFalse(table.requires_grad)
        self.expect(table[:, 0], x)

    def test_a_tensor_elsewhere(self):
        x = self.row(0, 4).to("meta")
        with self.assertRaisesRegex(lathe.LatheError, "is on 'meta', expected the CPU"):
            self.load("int_argument")(x, 5)


if __name__ == "__main__":
    unittest.main()
