"""Tensors whose dims lie in another order than they are named in, as those of memory format
channels_last do: permutations of tensors that lie row by row, as the library has all of them. It
reads and writes them where they are, and passes see through.
"""

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from lathe._encoding import encoding_of
from lathe.backend.outputs import dense_order, is_row_major


def order_of(tensor):
    """Its dims from the outermost to the innermost; None where it lies row by row, or has gaps."""
    if not isinstance(tensor, torch.Tensor) or is_row_major(tensor) or encoding_of(tensor):
        return None
    return dense_order(tensor)


def in_rows(module, orders, returned):
    """A copy of the graph that takes placeholders, by name, and returns results in these orders."""
    if not orders and not any(returned):
        return module
    graph = torch.fx.Graph()
    results = [*graph.graph_copy(module.graph, copies := {})]
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in (node for node in given if node.name in orders):
        order, taken = orders[node.name], copies[node]
        with graph.inserting_after(copies[given[-1]]):
            named = graph.call_function(torch.ops.aten.permute.default, (taken, inverse(order)))
        named.meta = dict(node.meta)
        taken.replace_all_uses_with(named, delete_user_cb=lambda user, own=named: user is not own)
        results = [named if result is taken else result for result in results]
        taken.meta["val"] = permuted(node.meta["val"], order)
    for k, order in enumerate(returned):
        if order is not None:
            lies = graph.call_function(torch.ops.aten.permute.default, (results[k], [*order]))
            lies.meta = dict(results[k].meta, val=permuted(results[k].meta["val"], order))
            results[k] = lies
    graph.output(tuple(results))
    return torch.fx.GraphModule(module, graph)


def inverse(order):
    return [order.index(dim) for dim in range(len(order))]


def permuted(tensor, order):
    mode = getattr(tensor, "fake_mode", None)
    with unset_fake_temporarily() if mode is None else mode:
        return tensor.detach().permute(order)
