"""Windows of signal processing, which a file makes with calls of their own."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, "frontend/python")

try:
    import torch

    import lathe
except ImportError as error:
    raise unittest.SkipTest(f"needs torch: {error}") from None

CALLS = (
    (torch.hann_window, ()), (torch.hamming_window, ()), (torch.blackman_window, ()),
    (torch.bartlett_window, ()), (torch.kaiser_window, ()), (torch.hann_window, (False,)),
    (torch.hamming_window, (False,)), (torch.hamming_window, (True, 0.6)),
    (torch.hamming_window, (False, 0.6, 0.3)), (torch.blackman_window, (False,)),
    (torch.bartlett_window, (False,)), (torch.kaiser_window, (False,)),
    (torch.kaiser_window, (True, 5.0)),
)
LENGTHS = (0, 1, 2, 3, 7, 400)
DTYPES = {torch.float32: 1e-6, torch.float64: 1e-7, torch.bfloat16: 2e-2}


class Windows(torch.nn.Module):
    def forward(self, x):
        return [call(length, *parameters, dtype=dtype) * x.to(dtype)
                for dtype in DTYPES for call, parameters in CALLS for length in LENGTHS]


class Spectrogram(torch.nn.Module):
    def forward(self, x):
        return torch.stft(x, 40, 16, window=torch.hann_window(40), return_complex=True).abs()


class SignalWindowTest(unittest.TestCase):
    def load(self, module, x):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "m.pt2")
            lathe.export(module, (x,), path=path)
            return lathe.load(path)(x)

    def test_windows(self):
        x = torch.ones(1)
        for mine, eagers in zip(self.load(Windows(), x), Windows()(x), strict=True):
            self.assertEqual(mine.dtype, eagers.dtype)
            bound = DTYPES[eagers.dtype]
            torch.testing.assert_close(mine, eagers, rtol=bound, atol=bound)

    def test_a_spectrogram(self):
        x = torch.randn(2, 400)
        torch.testing.assert_close(self.load(Spectrogram(), x), Spectrogram()(x), rtol=1e-4,
                                   atol=1e-4)


if __name__ == "__main__":
    unittest.main()
