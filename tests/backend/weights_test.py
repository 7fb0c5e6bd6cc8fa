"""Weights are packed once, and what changes them is seen."""

import copy
import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402



def optimise(layer):
    layer.weight.grad = torch.ones_like(layer.weight)
    torch.optim.SGD(layer.parameters(), lr=0.5).step()
    layer.weight.grad = None


def write_through_numpy(layer):
    array = layer.weight.detach().numpy()
    array += 1


CHANGES = {
    "another Parameter": lambda l: setattr(l, "weight", torch.nn.Parameter(l.weight + 1)),
    "another tensor": lambda l: l.weight.data.copy_(torch.ones_like(l.weight)),
    "in place": lambda l: l.weight.add_(1),
    ".data = t": lambda l: setattr(l.weight, "data", l.weight.data + 1),
    ".data.add_()": lambda l: l.weight.data.add_(1),
    "NumPy": write_through_numpy,
    "load_state_dict": lambda l: l.load_state_dict(
        {name: value + 1 for name, value in l.state_dict().items()}
    ),
    "an optimiser": optimise,
}


class WeightsTest(BackendTest):
    def layers(self):
        mine = torch.nn.Linear(6, 5).eval()
        return mine, copy.deepcopy(mine)

    def test_every_way_to_change_a_weight_is_seen(self):
        x = torch.randn(3, 6)
        for name, change in CHANGES.items():
            with self.subTest(name):
                torch._dynamo.reset()
                mine, theirs = self.layers()
                compiled = self.compile(mine)
                for _ in range(2):
                    self.expect(compiled(x), theirs(x))
                    change(mine)
                    change(theirs)
                self.expect(compiled(x), theirs(x))

    def test_weights_may_lie_in_any_order(self):
        layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
            torch.nn.Conv2d(8, 4, 1), torch.nn.Flatten(), torch.nn.Linear(36, 5)).eval()
        layers = layers.to(memory_format=torch.channels_last)
        layers[-1].weight = torch.nn.Parameter(torch.randn(36, 5).t())
        x = torch.randn(2, 3, 5, 5)
        compiled = self.compile(layers, dynamic=False)
        self.expect(compiled(x), layers(x))
        layers[-1].weight.mul_(2)
        self.expect(compiled(x), layers(x))

    def test_weights_that_change_again_and_again_become_inputs(self):
        mine, theirs = self.layers()
        compiled = self.compile(mine)
        x = torch.randn(3, 6)
        for _ in range(6):
            self.expect(compiled(x), theirs(x))
            for layer in (mine, theirs):
                layer.weight.add_(1)
        repacks = self.report().repacks
        self.assertEqual(len(repacks), 4)
        self.assertEqual(repacks[0], "a parameter was changed in place")
        self.assertIn("from now on they are inputs", repacks[-1])

    def test_live_weights_are_inputs(self):
        mine, theirs = self.layers()
        compiled = self.compile(mine, options={"weights": "live"})
        x = torch.randn(3, 6)
        for _ in range(3):
            self.expect(compiled(x), theirs(x))
            for layer in (mine, theirs):
                layer.weight.data[0, 0] += 1
        self.assertEqual(self.report().repacks, [])

    def test_frozen_weights_stay(self):
        mine, _ = self.layers()
        compiled = self.compile(mine, options={"weights": "frozen"})
        x = torch.randn(3, 6)
        before = compiled(x)
        mine.weight.add_(1)
        self.expect(compiled(x), before)

    def test_weights_of_inference_mode(self):
        with torch.inference_mode():
            layer = torch.nn.Linear(4, 4)
            compiled = self.compile(layer)
            x = torch.randn(2, 4)
            for _ in range(2):
                self.expect(compiled(x), layer(x))
                layer.weight.add_(1)
            self.expect(compiled(x), layer(x))

    def test_tied_and_strided_weights(self):
        weight = torch.nn.Parameter(torch.randn(6, 4))

        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.head = weight, weight
                self.turned = torch.nn.Parameter(torch.randn(4, 4).t())

            def forward(self, i):
                return (self.embed[i] @ self.turned) @ self.head.t()

        self.expect_eager(Tied(), (torch.tensor([0, 5, 2]),))

    def test_a_table_whose_size_varies_is_an_input(self):
        class Positions(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.randn(32, 4)

            def forward(self, x):
                return x * self.table.sum()

        self.expect_eager(Positions(), *[(torch.randn(n, 4),) for n in (5, 7)], dynamic=True)


if __name__ == "__main__":
    unittest.main()
