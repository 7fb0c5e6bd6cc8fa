"""Eager PyTorch modules of the zoo's graphs: bare model JSON, with weights from a seed.

torch.export.load wants an archive with weights; its deserialiser takes the JSON and a state dict of
our own just as well.
"""

import gzip
import json
import pathlib

import numpy as np
import torch
from torch._export.serde import schema, serialize
from torch.utils import _pytree

from lathe import random

# Numbers of the export schema's ScalarType.
DTYPES = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    12: torch.bool,
    13: torch.bfloat16,
}


def read_graph(path):
    data = pathlib.Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def random_state(program, seed):
    """The same weights as `--weights random:SEED`, as the state dict and the constants."""
    values, state, constants = program.graph_module.graph.tensor_values, {}, {}
    for spec in program.graph_module.signature.input_specs:
        if spec.type not in ("parameter", "buffer", "tensor_constant"):
            continue
        name = getattr(spec.value, f"{spec.type}_name")
        meta = values[spec.value.arg.name]
        shape = [size.as_int for size in meta.sizes]
        dtype = DTYPES[int(meta.dtype)]
        array = random.weight(name, str(dtype).replace("torch.", ""), shape, seed)
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        tensor = tensor.view(dtype) if dtype is torch.bfloat16 else tensor
        if spec.type == "parameter":
            state[name] = torch.nn.Parameter(tensor, requires_grad=False)
        elif spec.type == "buffer" and spec.value.persistent:
            state[name] = tensor
        else:
            constants[name] = tensor
    return state, constants


def flatten_results(document):
    """Results as a flat tuple: their classes need not be installed."""
    graph = document["graph_module"]
    count = sum("user_output" in spec for spec in graph["signature"]["output_specs"])
    for entry in graph["module_call_graph"]:
        if entry["signature"] is not None:
            spec = _pytree.tree_structure(tuple(range(count)))
            entry["signature"]["out_spec"] = _pytree.treespec_dumps(spec)


def load_program(path, seed):
    """What torch.export gave, over flat results, with weights from a seed."""
    document = read_graph(path)
    flatten_results(document)
    program = serialize._dict_to_dataclass(schema.ExportedProgram, document)
    state, constants = random_state(program, seed)
    return serialize.ExportedProgramDeserializer().deserialize(program, state, constants, None)


def load(path, seed):
    """A module over flat tensors that pays nothing but PyTorch's own dispatch."""
    module = load_program(path, seed).module(check_guards=False)
    module.graph.set_codegen(torch.fx.graph.CodeGen())  # no pytree work in the timed call
    module.recompile()
    module._forward_pre_hooks.clear()  # checks of the exported signature, in Python
    return module
