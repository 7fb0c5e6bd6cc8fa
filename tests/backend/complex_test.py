"""Complex numbers and Fourier transforms: through torch.compile, and as exported files."""

import pathlib
import sys
import tempfile
import unittest

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, lathe  # noqa: E402


class FNet(torch.nn.Module):
    """A block of FNet: a Fourier transform in the place of attention."""

    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.out = torch.nn.Sequential(torch.nn.Linear(width, 2 * width), torch.nn.GELU(),
                                       torch.nn.Linear(2 * width, width))

    def forward(self, x):
        x = self.norm(x + torch.fft.fftn(x, dim=(1, 2)).real)
        return x + self.out(x)


class FourierOperator(torch.nn.Module):
    """A layer of a Fourier neural operator: complex weights on the lowest frequencies."""

    def __init__(self, channels, modes):
        super().__init__()
        self.modes = modes
        shape = (channels, channels, modes, modes)
        self.low = torch.nn.Parameter(torch.randn(shape, dtype=torch.cfloat) / channels)
        self.high = torch.nn.Parameter(torch.randn(shape, dtype=torch.cfloat) / channels)

    def forward(self, x):
        m = self.modes
        spectrum = torch.fft.rfft2(x)
        out = torch.zeros(*x.shape[:-1], x.shape[-1] // 2 + 1, dtype=torch.cfloat)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=x.shape[-2:])


class Spectrogram(torch.nn.Module):
    """As torchaudio has it."""

    def __init__(self, points, step):
        super().__init__()
        self.points, self.step = points, step
        self.register_buffer("window", torch.hann_window(points))

    def forward(self, x):
        spectrum = torch.stft(x, self.points, self.step, self.points, self.window,
                              center=True, pad_mode="reflect", onesided=True, return_complex=True)
        return spectrum.abs().pow(2.0)


class Rotary(torch.nn.Module):
    """Positions as rotations of pairs, as the first Llama's code has them."""

    def __init__(self, width, length):
        super().__init__()
        frequencies = 1.0 / (10000.0 ** (torch.arange(0, width, 2).float() / width))
        angles = torch.outer(torch.arange(length).float(), frequencies)
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, q):
        pairs = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
        turns = self.turns.view(1, q.shape[1], 1, -1)
        return torch.view_as_real(pairs * turns).flatten(3).type_as(q)


class Mixed(torch.nn.Module):
    """Complex tensors in and out, and a number."""

    def forward(self, z, x):
        w = (z * x + 1j) / (z.conj() + 2.0)
        return w, torch.matmul(z, w.mT), w.angle(), z.sum(-1)


def complex_pair(*shape):
    return torch.randn(*shape, dtype=torch.cfloat), torch.randn(*shape)


MODELS = (
    (lambda: FNet(12), (torch.randn(2, 10, 12),)),
    (lambda: FourierOperator(3, 4), (torch.randn(2, 3, 16, 12),)),
    (lambda: Spectrogram(40, 10), (torch.randn(2, 200),)),
    (lambda: Rotary(8, 6), (torch.randn(2, 6, 3, 8),)),
    (Mixed, complex_pair(3, 4)),
)
LENGTHS = (1, 2, 3, 7, 30, 64, 101, 128, 210, 521, 600, 1000, 1009, 1024, 2053, 4096)


class ComplexTest(BackendTest):
    def test_models(self):
        for make, args in MODELS:
            torch._dynamo.reset()
            lathe.backend.clear_reports()
            self.expect_eager(make(), args)

    def test_conjugates_that_are_returned(self):
        def function(z):
            w = z * 2
            return w, w.conj(), w.imag, w.real

        self.expect_eager(function, (torch.randn(3, 4, dtype=torch.cfloat),))

    def test_batches_that_vary(self):
        calls = [(torch.randn(n, 10, 12),) for n in (3, 5, 2)]
        self.expect_eager(FNet(12), *calls)

    def test_lengths_that_vary_are_eagers(self):
        def function(x):
            return torch.fft.fft(x * 2).real

        compiled = torch.compile(function, backend="lathe", dynamic=True)
        for n in (12, 20, 33):
            x = torch.randn(2, n)
            torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-4)

    def test_conjugates_that_are_given(self):
        self.expect_eager(lambda z: z * 2, (torch.randn(3, 4, dtype=torch.cfloat).conj(),))


class FileTest(unittest.TestCase):
    def load(self, module, args, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/m.pt2"
            torch.export.save(torch.export.export(module.eval(), args, **options), path)
            return lathe.load(path)

    def expect(self, found, expected):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)

    def test_models(self):
        torch.manual_seed(0)
        for make, args in MODELS:
            module = make()
            self.expect(self.load(module, args)(*args), module(*args))

    def test_arrays(self):
        args = complex_pair(3, 4)
        found = self.load(Mixed(), args)(*(a.numpy() for a in args))
        self.assertEqual([f.dtype for f in found[:3]], [np.complex64, np.complex64, np.float32])
        self.expect([torch.from_numpy(f) for f in found], list(Mixed()(*args)))

    def test_a_symbolic_batch(self):
        module = FourierOperator(3, 4)
        batch = torch.export.Dim("batch", min=1, max=64)
        model = self.load(module, (torch.randn(2, 3, 16, 12),), dynamic_shapes=({0: batch},))
        for n in (2, 1, 5):
            x = torch.randn(n, 3, 16, 12)
            self.expect(model(x), module(x))

    def test_lengths(self):
        """As accurate as eager, whatever a length is made of."""

        class Transforms(torch.nn.Module):
            def forward(self, z, x):
                half = torch.fft.rfft(x)
                return torch.fft.fft(z), torch.fft.ifft(z), half, torch.fft.irfft(half, x.shape[1])

        for n in LENGTHS:
            args = complex_pair(2, n)
            exact = Transforms()(*(a.to(torch.cdouble if a.is_complex() else torch.double)
                                   for a in args))
            results = zip(self.load(Transforms(), args)(*args), Transforms()(*args), exact)
            for found, eager, wanted in results:
                errors = [(value - wanted).abs().pow(2).mean().sqrt() for value in (found, eager)]
                scale = wanted.abs().pow(2).mean().sqrt()
                with self.subTest(n=n):
                    self.assertLess(errors[0], 3 * errors[1] + 2e-7 * scale)


if __name__ == "__main__":
    unittest.main()
