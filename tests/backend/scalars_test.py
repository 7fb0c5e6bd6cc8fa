"""Numbers on the CPU that calls on another device read; "meta" stands for such a device."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import BackendTest, lathe  # noqa: E402, F401
from lathe.backend.scalars import inline_scalars, move_scalars  # noqa: E402

aten = torch.ops.aten
META = torch.device("meta")


class ScalarsTest(BackendTest):
    def setUp(self):
        self.graph = torch.fx.Graph()
        self.x = self.add("x", torch.empty(4, device=META))
        self.constants = {}

    def add(self, name, value):
        node = self.graph.placeholder(name)
        node.meta["val"] = value
        return node

    def constant(self, name, tensor):
        self.constants[name] = tensor
        return self.add(name, tensor)

    def call(self, target, *args):
        node = self.graph.call_function(target, args)
        node.meta["val"] = target(*(getattr(a, "meta", {}).get("val", a) for a in args))
        return node

    def devices(self, *returned):
        """Of the constants, after they have moved."""
        self.graph.output(returned)
        move_scalars(self.graph, self.constants, META)
        return [tensor.device.type for tensor in self.constants.values()]

    def test_a_number_that_fills_moves_with_its_copies(self):
        number = self.constant("c", torch.tensor(3.0))
        copy = self.call(aten.lift_fresh_copy.default, number)
        self.assertEqual(self.devices(self.call(aten.fill.Tensor, self.x, copy)), ["meta"])
        self.assertEqual(number.meta["val"].device, META)
        self.assertEqual(copy.meta["val"].device, META)

    def test_what_is_made_of_numbers_alone_moves_with_them(self):
        first, second = (self.constant(n, torch.tensor(3.0)) for n in "ab")
        product = self.call(aten.mul.Tensor, first, second)
        scale = self.call(aten.sqrt.default, product)
        self.assertEqual(self.devices(self.call(aten.div.Tensor, self.x, scale)), ["meta", "meta"])
        self.assertEqual(scale.meta["val"].device, META)

    def test_what_is_made_of_numbers_and_returned_stays(self):
        number = self.constant("c", torch.tensor(3.0))
        scale = self.call(aten.sqrt.default, number)
        divided = self.call(aten.div.Tensor, self.x, scale)
        self.assertEqual(self.devices(divided, scale), ["cpu"])
        self.assertEqual(scale.meta["val"].device.type, "cpu")

    def test_a_number_that_is_drawn_stays(self):
        number = self.constant("c", torch.tensor(0.5))
        drawn = self.call(aten.bernoulli.default, number)
        self.assertEqual(self.devices(self.call(aten.mul.Tensor, self.x, drawn)), ["cpu"])

    def test_a_number_that_is_returned_stays(self):
        number = self.constant("c", torch.tensor(3.0))
        copy = self.call(aten.lift_fresh_copy.default, number)
        filled = self.call(aten.fill.Tensor, self.x, copy)
        self.assertEqual(self.devices(filled, copy), ["cpu"])

    def test_a_number_that_the_cpu_reads_as_well_stays(self):
        number = self.constant("c", torch.tensor(3.0))
        filled = self.call(aten.fill.Tensor, self.x, number)
        self.assertEqual(self.devices(filled, self.call(aten.neg.default, number)), ["cpu"])

    def test_more_than_one_number_stays(self):
        self.constant("c", torch.ones(4))
        self.assertEqual(self.devices(self.x), ["cpu"])

    def test_each_number_moves_by_itself(self):
        first, second = (self.constant(n, torch.tensor(2.0)) for n in "ab")
        filled = self.call(aten.fill.Tensor, self.x, first)
        self.assertEqual(self.devices(filled, second), ["meta", "cpu"])

    def test_numbers_are_written_into_the_graph(self):
        number, row = self.constant("c", torch.tensor(2.5)), self.constant("r", torch.ones(4))
        product = self.call(aten.mul.Tensor, row, number)
        self.graph.output((product,))
        inline_scalars(self.graph, self.constants, torch.device("cpu"))
        self.assertEqual(["r"], list(self.constants))
        made = product.args[1]
        self.assertEqual((aten.full.default, ([], 2.5)), (made.target, tuple(made.args)))

    def test_a_number_that_is_returned_or_changed_is_not(self):
        number, other = (self.constant(n, torch.tensor(2.5)) for n in "ab")
        self.call(aten.copy_.default, other, self.call(aten.neg.default, number))
        self.graph.output((number,))
        inline_scalars(self.graph, self.constants, torch.device("cpu"))
        self.assertEqual(["a", "b"], list(self.constants))


if __name__ == "__main__":
    unittest.main()
