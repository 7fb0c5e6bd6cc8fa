"""Weights whose dims lie in another order than they are named in, as filters do in memory format
channels_last: permutations of tensors that lie row by row, which a GPU reads where they are and
passes see through.
"""

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from lathe._encoding import encoding_of
from lathe.backend.outputs import dense_order


def in_rows(module, weights):
    """A copy of the graph that takes such weights, by placeholder's name, as they lie, and all
    weights as it takes them.
    """
    orders = {name: dense_order(tensor) for name, tensor in weights.items()
              if not tensor.is_contiguous() and encoding_of(tensor) is None}
    orders = {name: order for name, order in orders.items() if order is not None}
    if not orders:
        return module, weights
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, copies := {}))
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in (node for node in given if node.name in orders):
        order, taken = orders[node.name], copies[node]
        with graph.inserting_after(copies[given[-1]]):
            named = graph.call_function(torch.ops.aten.permute.default,
                                        (taken, [order.index(d) for d in range(len(order))]))
        named.meta = dict(node.meta)
        taken.replace_all_uses_with(named, delete_user_cb=lambda user, own=named: user is not own)
        taken.meta["val"] = permuted(node.meta["val"], order)
    rows = {name: permuted(weights[name], order) for name, order in orders.items()}
    return torch.fx.GraphModule(module, graph), weights | rows


def permuted(tensor, order):
    mode = getattr(tensor, "fake_mode", None)
    with unset_fake_temporarily() if mode is None else mode:
        return tensor.detach().permute(order)
