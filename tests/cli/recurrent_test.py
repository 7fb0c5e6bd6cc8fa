"""Recurrent layers that torch.export wrote, against PyTorch: cells, layers, directions, sizes."""

import itertools
import os
import pathlib
import sys
import tempfile
import unittest

os.environ["LATHE_LIBRARY"] = str(pathlib.Path("frontend/api/liblathe.so").resolve())
sys.path.insert(0, "frontend/python")

try:
    import torch
    from torch import nn

    import lathe
except ImportError as error:
    raise unittest.SkipTest(f"needs torch: {error}") from None

CELLS = {"lstm": (nn.LSTM, {}), "gru": (nn.GRU, {}), "rnn_tanh": (nn.RNN, {}),
         "rnn_relu": (nn.RNN, {"nonlinearity": "relu"})}
# (inputs, hidden, layers, steps, batch): one of everything, primes, more rows than a tile has.
SIZES = [(1, 1, 1, 1, 1), (5, 17, 2, 3, 2), (40, 37, 1, 7, 13), (16, 100, 3, 2, 7)]


class Flat(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, *states):
        given = {0: None, 1: states[:1], 2: states}[len(states)]
        y, last = self.layer(x, given[0] if len(states) == 1 else given)
        return (y, *last) if isinstance(last, tuple) else (y, last)


class RecurrentTest(unittest.TestCase):
    def check(self, model, args):
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = pathlib.Path(folder) / "m.pt2"
            lathe.export(model.eval(), args, path=path)
            ran = lathe.load(path, threads=2)(*args)
            for mine, theirs in zip(ran, model(*args), strict=True):
                torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)

    def test_cells(self):
        for (cell, (kind, options)), size, both in itertools.product(CELLS.items(), SIZES,
                                                                     (False, True)):
            with self.subTest(cell=cell, size=size, bidirectional=both):
                torch.manual_seed(0)
                inputs, hidden, layers, steps, batch = size
                layer = kind(inputs, hidden, layers, bias=steps != 3, batch_first=steps == 7,
                             bidirectional=both, **options)
                shape = (batch, steps) if steps == 7 else (steps, batch)
                self.check(Flat(layer), (torch.randn(*shape, inputs),))

    def test_states_are_inputs(self):
        for cell, (kind, options) in CELLS.items():
            with self.subTest(cell=cell):
                states = [torch.randn(1, 3, 20) for _ in range(2 if cell == "lstm" else 1)]
                self.check(Flat(kind(8, 20, **options)), (torch.randn(4, 3, 8), *states))


if __name__ == "__main__":
    unittest.main()
