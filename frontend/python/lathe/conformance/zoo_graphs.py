"""The graphs of tests/zoo with the weights of a seed: models of full size as PyTorch exported them.

The backend "export" reads the graph's own file; the others get a module that PyTorch makes of it.
"""

import importlib.util
import re

import torch

from lathe import random
from lathe.conformance import verdict
from lathe.conformance.case import Case
from lathe.sweep import models

READER = "tests/bench/eager.py"
SEED = 0


class ZooGraph(torch.nn.Module):
    """archive, weights: what lathe.load takes in place of the module."""

    def __init__(self, path, graph):
        super().__init__()
        self.archive, self.weights = path, f"random:{SEED}"
        self.graph = graph

    def forward(self, *tensors):
        return self.graph(*tensors)


def paths():
    """By name; none where the tree is not at hand."""
    try:
        tests = models.tree_file(READER).parents[1]
    except models.ModelError:
        return {}
    return {path.name.split(".")[0]: path for path in sorted(tests.glob("zoo/*.aten.json.gz"))}


def entries(choice):
    return [{"suite": "zoo", "index": i, "name": name, "dtype": "f32"}
            for i, name in enumerate(paths())
            if not choice.pattern or re.search(choice.pattern, name)]


def cases(entry, device):
    spec = importlib.util.spec_from_file_location("eager", models.tree_file(READER))
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    path = paths()[entry["name"]]
    graph = reader.load(path, SEED)
    args = tuple(given(node) for node in graph.graph.nodes if node.op == "placeholder")
    bound = verdict.MODEL_TOLERANCE
    yield Case("", ZooGraph(path, graph).to(device), tuple(arg.to(device) for arg in args),
               bounds={"rtol": bound, "atol": bound}, float64=False, is_timed=True)


def given(node):
    """The input that a run without given inputs uses."""
    meta = node.meta["val"]
    kind = str(meta.dtype).removeprefix("torch.")
    return torch.from_numpy(random.input(node.name, kind, tuple(meta.shape), SEED))
