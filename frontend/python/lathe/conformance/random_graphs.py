"""Random graphs by NNSmith, a fuzzer of others (pip install nnsmith); a graph is a seed."""

import functools
import random
import re
import tempfile

import torch

from lathe.conformance.case import Case

NODES = 10
ELEMENTS = 2**16  # of a tensor, at most
SOLVER_MS = 10_000


@functools.lru_cache(maxsize=1)
def generator():
    """NNSmith's model type and operators."""
    from nnsmith import narrow_spec
    from nnsmith.abstract.extension import activate_ext
    from nnsmith.materialize import Model

    kind = Model.init("torch", backend_target="cpu")
    with tempfile.TemporaryDirectory() as folder:
        # It would keep them in the user's cache, which may not be writable; they take a second.
        narrow_spec.NNSMITH_CACHE_DIR = folder
        random.seed(0)  # It tries each operator on a random case, and some cases raise or drop it.
        operators = narrow_spec.auto_opset(kind, None)
    for operator in operators:  # From sets, whose order is another in each process.
        operator.in_dtypes.sort(key=str)
        operator.out_dtypes.sort(key=str)
    activate_ext(opset=operators, factory=None)
    return kind, operators


class Graph(torch.nn.Module):
    """The network without what NNSmith adds to its forward: checks and logs."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.inputs = list(net.ir.input_var())

    def forward(self, *tensors):
        values = dict(zip(self.inputs, tensors, strict=True))
        for function, operands, results, _ in self.net.instructions:
            found = function(*(values[name] for name in operands))
            found = found if isinstance(found, list) else [found]
            values.update(zip(results, found))
        return tuple(values[name] for name in self.net.output_map)


def entries(choice):
    try:
        generator()
    except ImportError as error:
        raise RuntimeError(f"suite graphs: {error}; pip install nnsmith") from None
    names = (f"seed {seed}" for seed in range(choice.seed, choice.seed + choice.graphs))
    return [{"suite": "graphs", "index": int(name.split()[1]), "name": name, "dtype": "f32"}
            for name in names if not choice.pattern or re.search(choice.pattern, name)]


def cases(entry, device):
    from nnsmith.graph_gen import model_gen
    from z3 import z3

    kind, operators = generator()
    torch.manual_seed(entry["index"])
    # What the solver finds depends on what its context has seen, so each graph has a new one.
    z3._main_ctx = None
    made = model_gen(opset=operators, method="symbolic-cinit", seed=entry["index"],
                     max_elem_per_tensor=ELEMENTS, max_nodes=NODES, timeout_ms=SOLVER_MS)
    model = kind.from_gir(made.make_concrete())
    model.refine_weights()
    net = model.torch_model.eval()
    inputs = model.sat_inputs or net.get_random_inps()
    module = Graph(net).to(device)
    # Values of any size go through any functions, in dtypes that the result's does not show.
    bounds = {"rtol": 1e-2, "atol": 1e-3}
    yield Case("", module, tuple(inputs[name].to(device) for name in module.inputs),
               bounds=bounds, is_random=True)
