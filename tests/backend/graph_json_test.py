"""Our writer of graphs says what PyTorch's serializer says."""

import io
import json
import pathlib
import sys
import unittest
import zipfile

import torch

sys.path.insert(0, str(pathlib.Path("tests/backend").resolve()))

from case import lathe  # noqa: E402, F401
from lathe._graph_json import Unwritable, write  # noqa: E402


class Module(torch.nn.Module):
    """A function with weights."""

    def __init__(self, function, **weights):
        super().__init__()
        self.function = function
        for name, value in weights.items():
            self.register_buffer(name, value)

    def forward(self, *args):
        return self.function(self, *args)


def many_kinds_of_arguments(m, x):
    a, b = torch.split(x, [1, x.shape[0] - 1])
    y = torch.cat([a, b * 2.5]).to(torch.float64)
    y = torch.clamp(y, min=float("-inf"), max=3)
    y = torch.full_like(y, 1.5, dtype=torch.float16, device="cpu") + y
    y = y[:, torch.tensor([0, 2])] if m is None else y[:, m.index]
    values, _ = torch.topk(y, 1, dim=-1, largest=True)
    return torch.stack([values, values]).contiguous(memory_format=torch.contiguous_format)


def lists_of_sizes(m, x):
    return x.new_zeros(x.shape[0], 3).expand(2, -1, 3), x.reshape(-1, 2), x.shape[0] // 2


CASES = {
    "weights": (Module(lambda m, x: x @ m.w, w=torch.randn(4, 4)), (torch.randn(3, 4),), False),
    "arguments": (
        Module(many_kinds_of_arguments, index=torch.tensor([0, 2])),
        (torch.randn(4, 4),),
        False,
    ),
    "sizes": (Module(lists_of_sizes), (torch.randn(8, 4),), True),
    "arguments of any size": (
        Module(many_kinds_of_arguments, index=torch.tensor([0, 2])),
        (torch.randn(4, 4),),
        True,
    ),
    "layers": (
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.GELU()),
        (torch.randn(4, 3, 8, 8),),
        True,
    ),
}


def serialized(program):
    """PyTorch's JSON of an ExportedProgram."""
    file = io.BytesIO()
    torch.export.save(program, file)
    with zipfile.ZipFile(file) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("models/model.json"))
        return json.loads(archive.read(name))


class WriterTest(unittest.TestCase):
    def test_the_same_calls_values_and_ranges(self):
        for name, (module, args, is_dynamic) in CASES.items():
            with self.subTest(name):
                shapes = ({0: torch.export.Dim("n", min=3, max=64)},) if is_dynamic else None
                program = torch.export.export(
                    module.eval(), args, dynamic_shapes=shapes and (shapes,)
                    if isinstance(module, Module)
                    else shapes,
                )
                self.compare(program)

    def compare(self, program):
        theirs = serialized(program)
        weights = {
            spec.arg.name: spec.target
            for spec in program.graph_signature.input_specs
            if spec.target is not None
        }
        mine = write(program.graph_module, weights)
        graph, expected = mine["graph_module"]["graph"], theirs["graph_module"]["graph"]
        self.assertEqual(len(graph["nodes"]), len(expected["nodes"]))
        for node, other in zip(graph["nodes"], expected["nodes"]):
            self.assertEqual(node["target"], other["target"])
            self.assertEqual(self.given(node), self.given(other))
            self.assertEqual(node["outputs"], other["outputs"])
        self.assertEqual(graph["outputs"], expected["outputs"])
        self.assertEqual(self.types(graph), self.types(expected))
        self.assertEqual(graph["sym_int_values"], expected["sym_int_values"])
        self.assertEqual(mine["range_constraints"], theirs["range_constraints"])
        self.assertEqual(
            sum("user_input" in s for s in mine["graph_module"]["signature"]["input_specs"]),
            sum("user_input" in s for s in theirs["graph_module"]["signature"]["input_specs"]),
        )

    def given(self, node):
        return {item["name"]: item["arg"] for item in node["inputs"]}

    def types(self, graph):
        values = graph["tensor_values"].items()
        return {n: (t["dtype"], t["sizes"], t["strides"]) for n, t in values}

    def test_what_it_has_no_words_for_is_refused_by_name(self):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        x.meta["val"] = torch.empty(2, device="meta")
        call = graph.call_function(torch.nn.functional.relu, (x,))
        call.meta["val"] = x.meta["val"]
        graph.output((call,))
        with self.assertRaisesRegex(Unwritable, "'relu' is no operator") as caught:
            write(torch.fx.GraphModule({}, graph))
        self.assertIs(caught.exception.node, call)


if __name__ == "__main__":
    unittest.main()
