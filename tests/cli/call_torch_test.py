"""What a loaded model takes and gives, with PyTorch's tensors."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/cli").resolve()))

from call_test import LAYOUTS, Calls, lathe, np  # noqa: E402


class TorchTest(Calls, unittest.TestCase):
    kind = torch.Tensor

    def tensor(self, array):
        return torch.from_numpy(np.array(array))

    def repeated(self, tensor, shape):
        return tensor.expand(shape)

    def reordered(self, tensor):
        return tensor.T.contiguous().T

    def test_channels_last(self):
        model = self.doubled("f32[2, 3, 4, 5]")
        x = torch.randn(2, 3, 4, 5)
        for _ in range(2):
            self.expect(model(x.contiguous(memory_format=torch.channels_last)), x + x)
            self.expect(model(x), x + x)

    def test_negatives_by_a_bit_are_resolved_and_conjugates_do_not_fit(self):
        model = self.text(LAYOUTS)
        z = torch.complex(torch.zeros(12), torch.arange(12.0))
        y = self.row(0)
        strided = z.conj().imag
        contiguous = torch._neg_view(torch.arange(12.0))
        for view in (strided, contiguous):
            self.assertTrue(view.is_neg())
            for _ in range(2):
                self.expect(model(view.reshape(4, 3), y), view.resolve_neg().reshape(4, 3) - y)
        one = self.doubled("f32[1]")
        for _ in range(2):
            self.expect(one(strided[3:4]), torch.tensor([-6.0]))
        with self.assertRaisesRegex(lathe.LatheError, r"is float32\[4, 3\], got complex64"):
            model(z.conj().reshape(4, 3), y)

    def test_a_mutated_view_of_negatives(self):
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        turned = [torch._neg_view(-t) for t in (x.clone(), y.clone())]
        self.expect(model(*turned), model(x, y))
        self.expect(turned[0].resolve_neg(), x)
        self.expect(turned[1].resolve_neg(), y)

    def test_modes_and_gradients(self):
        model = self.doubled("f32[3]")
        for context in (torch.no_grad, torch.inference_mode, torch.enable_grad):
            with context():
                x = self.row(1)
                for value in (x, x.clone().requires_grad_(context is not torch.inference_mode)):
                    result = model(value)
                    self.assertFalse(result.requires_grad)
                    self.assertEqual(result.is_inference(), context is torch.inference_mode)
                    self.expect(result, [2, 4, 6])

    def test_bf16_and_what_has_its_size(self):
        model = self.doubled("bf16[3]")
        x = self.row(1).bfloat16()
        for _ in range(2):
            self.expect(model(x).float(), [2, 4, 6])
        bits = x.view(torch.uint16)
        for wrong in (bits, self.row(1).half()):
            with self.assertRaisesRegex(lathe.LatheError, r"is bfloat16\[3\], got"):
                model(wrong)
        self.assertEqual(model(bits.numpy()).dtype, np.uint16)

    def test_subclasses(self):
        class Marked(torch.Tensor):
            pass

        model = self.doubled("f32[3]")
        x = self.row(1)
        for value in (x.as_subclass(Marked), torch.nn.Parameter(x), torch.nn.Buffer(x)):
            for _ in range(2):
                self.expect(model(value), [2, 4, 6])
        self.take_the_short_way(model)
        for value in (torch.nn.Parameter(x), torch.nn.Buffer(x)):
            self.expect(model(value), [2, 4, 6])

    def test_a_tensor_without_memory(self):
        model = self.doubled("f32[3]")
        model(self.row(1))
        with torch._subclasses.FakeTensorMode() as mode:
            fake = mode.from_tensor(self.row(1))
        with self.assertRaises(RuntimeError):
            model(fake)
        with self.assertRaises(RuntimeError):
            torch.vmap(model)(torch.ones(2, 3))

    def test_arrays_among_tensors(self):
        model = self.load("mutated_inputs")
        x, y = self.matrices()
        for pair in ((x, y.numpy()), (x.numpy(), y)):
            self.expect(model(*pair), x + y)
        short = self.text(LAYOUTS)
        wide, y3 = self.views()["plain"], self.row(0)
        expected = short(wide, y3.numpy()), short(wide.numpy(), y3)
        self.take_the_short_way(short)
        self.expect(short(wide, y3.numpy()), expected[0])
        self.expect(short(wide.numpy(), y3), expected[1])
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
