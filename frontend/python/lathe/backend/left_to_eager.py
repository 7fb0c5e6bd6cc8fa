"""Calls that Lathe leaves to eager although it could take them, each with the reason."""

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from lathe.backend.pieces import is_tensor_call

aten = torch.ops.aten

# The longest rows of which eager is no faster where a size is not a number, or on a GPU: there what
# takes few of many moves all of them once.
LONGEST_ORDERED = {aten.topk: 16384}

# Products of runs of rows whose ends are data: a library takes each run where it is, Lathe copies
# the matrix of each of its tiles.
GROUPED = {aten._grouped_mm}

# What several elements may be written to one place by. On a GPU Lathe's writes come in any order,
# as eager's do unless it is asked for one.
WRITES = {
    aten.bincount, aten.embedding_bag, aten._embedding_bag, aten._embedding_bag_forward_only,
    aten.histc, aten.index_add, aten.index_copy, aten.index_put, aten._unsafe_index_put,
    aten._unsafe_masked_index_put_accumulate, aten.index_reduce, aten.max_unpool2d,
    aten.max_unpool3d, aten.put, aten.scatter, aten.scatter_add, aten.scatter_reduce,
}


def calls_left_to_eager(graph, device):
    """Reasons by name of a call."""
    return (calls_elsewhere(graph, device) | calls_that_draw(graph)
            | calls_that_eager_does_faster(graph) | calls_to_order(graph, device))


def packet_of(node):
    return getattr(node.target, "overloadpacket", None)


def calls_that_draw(graph):
    """Random numbers are those of PyTorch's generators, at their place among its draws."""
    return {n.name: "it draws from PyTorch's generator" for n in graph.nodes if draws(n)}


def draws(node):
    op = node.target
    if not isinstance(op, torch._ops.OpOverload):
        return False
    given = {a.name: a.default_value for a in op._schema.arguments}
    given |= dict(zip(given, node.args)) | node.kwargs
    is_off = given.get("dropout_p") == 0 or given.get("train", given.get("training")) is False
    return torch.Tag.nondeterministic_seeded in op.tags and not is_off


def calls_that_eager_does_faster(graph):
    found = {}
    for node in graph.nodes:
        packet = packet_of(node)
        if packet in GROUPED:
            found[node.name] = "eager multiplies runs of rows faster"
        longest = LONGEST_ORDERED.get(packet)
        if longest is None:
            continue
        value, dim = node.args[0].meta["val"], (*node.args, -1)[2]
        row = value.shape[dim] if value.dim() else 1
        is_taken = value.is_cuda or not isinstance(row, int)
        if is_taken and not statically_known_true(row <= longest):
            found[node.name] = f"eager orders rows of more than {longest} faster"
    return found


def calls_to_order(graph, device):
    """Of torch.use_deterministic_algorithms, which Dynamo compiles a graph of its own for."""
    if device.type != "cuda" or not torch.are_deterministic_algorithms_enabled():
        return {}
    return {n.name: "deterministic algorithms are asked for, and Lathe's writes come in any order"
            for n in graph.nodes if packet_of(n) in WRITES}


def tensors_of(node):
    values = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    return [v for v in values if isinstance(v, torch.Tensor)]


def made_to_move(graph, device):
    """Calls on the CPU that make tensors of nothing, of which only copies on the device are read:
    they may be made there.
    """

    def is_on(node, where):
        values = tensors_of(node)
        return node.op == "call_function" and values and all(v.device == where for v in values)

    def is_number(node):
        return node.op != "get_attr" and not tensors_of(node)

    moved = {n for n in graph.nodes if is_on(n, torch.device("cpu")) and not draws(n)}
    while True:
        kept = {
            node for node in moved
            if all(n in moved or is_number(n) for n in node.all_input_nodes)
            and all(n in moved or is_on(n, device) for n in node.users)
        }
        if len(kept) == len(moved):
            return kept
        moved = kept


def calls_elsewhere(graph, device):
    """Calls that read or make a tensor of another device: a piece of Lathe's has one."""
    refused = {}
    moved = made_to_move(graph, device) if device.type == "cuda" else set()
    for node in filter(is_tensor_call, graph.nodes):
        for value in (v for n in (*node.all_input_nodes, node) if n not in moved
                      for v in tensors_of(n)):
            if value.device != device:
                refused[node.name] = f"a tensor is on '{value.device}', others on '{device}'"
    return refused
