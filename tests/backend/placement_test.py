"""Where calls of a graph run: what is made on the CPU to move to the device is made there."""

import pathlib
import sys
import unittest

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest  # noqa: E402

from lathe.backend.left_to_eager import calls_elsewhere, calls_left_to_eager  # noqa: E402
from lathe.backend.settled import settled_calls  # noqa: E402

aten = torch.ops.aten
GPU = torch.device("cuda", 0)
MADE = {"arange_default", "mul_tensor", "_to_copy_default"}


class Calls:
    """A graph whose tensors have a shape and a device, and no numbers."""

    def __init__(self):
        self.graph, self.mode = torch.fx.Graph(), FakeTensorMode()

    def tensor(self, device):
        with self.mode:
            return torch.empty(5, device=device)

    def takes(self, name, device):
        node = self.graph.placeholder(name)
        node.meta["val"] = self.tensor(device)
        return node

    def call(self, op, *args, on="cpu"):
        node = self.graph.call_function(op, args)
        node.meta["val"] = self.tensor(on)
        return node

    def elsewhere(self, *returned):
        self.graph.output(returned)
        return set(calls_elsewhere(self.graph, GPU))


class PlacementTest(BackendTest):
    def setUp(self):
        super().setUp()
        self.calls = Calls()
        self.x = self.calls.takes("x", GPU)

    def made(self):
        """Positions on the CPU and twice as much, which moves."""
        made = self.calls.call(aten.arange.default, 5)
        twice = self.calls.call(aten.mul.Tensor, made, 2)
        moved = self.calls.call(aten._to_copy.default, twice, on=GPU)
        return made, twice, self.calls.call(aten.add.Tensor, self.x, moved, on=GPU)

    def test_what_is_made_to_move_is_made_on_the_device(self):
        _, _, result = self.made()
        self.assertEqual(set(), self.calls.elsewhere(result))

    def test_what_is_returned_on_the_cpu_stays_there(self):
        made, twice, result = self.made()
        self.assertEqual(MADE, self.calls.elsewhere(result, twice))

    def test_what_reads_the_callers_numbers_stays_where_they_are(self):
        own = self.calls.takes("own", "cpu")
        made, _, result = self.made()
        summed = self.calls.call(aten.add.Tensor, own, made)
        last = self.calls.call(aten._to_copy.default, summed, on=GPU)
        found = self.calls.elsewhere(result, last)
        self.assertEqual(MADE | {"add_tensor_1", "_to_copy_default_1"}, found)

    def test_a_table_on_the_cpu_that_moves_is_settled(self):
        table, own = (self.calls.takes(name, "cpu") for name in ("table", "own"))
        halves = self.calls.call(aten._to_copy.default, table)
        moved = self.calls.call(aten._to_copy.default, halves, on=GPU)
        other = self.calls.call(aten._to_copy.default, own, on=GPU)
        result = self.calls.call(aten.add.Tensor, moved, other, on=GPU)
        refused = self.calls.elsewhere(result)
        self.assertEqual([halves, moved],
                         settled_calls(self.calls.graph, refused, {"table"}))

    def test_draws_are_pytorchs(self):
        drawn = self.calls.call(aten.rand.default, [5])
        moved = self.calls.call(aten._to_copy.default, drawn, on=GPU)
        self.assertEqual({"rand_default", "_to_copy_default"}, self.calls.elsewhere(moved))

    def test_writes_come_in_order_where_deterministic_algorithms_are_asked_for(self):
        at = self.calls.takes("at", GPU)
        self.calls.call(aten.index_add.default, self.x, 0, at, self.x, on=GPU)
        self.calls.call(aten.add.Tensor, self.x, self.x, on=GPU)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        for is_asked_for, left in ((False, set()), (True, {"index_add_default"})):
            torch.use_deterministic_algorithms(is_asked_for)
            self.assertEqual(left, set(calls_left_to_eager(self.calls.graph, GPU)))


if __name__ == "__main__":
    unittest.main()
