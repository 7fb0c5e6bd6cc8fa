"""Views that calls in eager read are eager's as well: Lathe's would be copies, of weights too."""

import operator

import torch

from lathe.backend.strides import operand_of_view


def give_views(graph, refused, views):
    """Lets each call of `refused`, by name, read views of its own, right before it; their names
    join `views`.
    """
    for node in list(graph.nodes):
        if node.op != "call_function" or node.name not in refused:
            continue
        copies = {}
        for source in node.all_input_nodes:
            if is_view(source) and source.name not in refused and source.name not in views:
                node.replace_input_with(source, copy_of(source, node, copies, views))
    for node in reversed(list(graph.nodes)):
        if not node.users and is_view(node):
            graph.erase_node(node)


def is_view(node):
    is_call = node.op == "call_function" and node.target is not operator.getitem
    return is_call and isinstance(node.meta.get("val"), torch.Tensor) and (
        operand_of_view(node) is not None)


def copy_of(node, reader, copies, views):
    """The view again, of what no view is, before its reader."""
    if not is_view(node) or node.name in views:
        return node
    if node not in copies:
        args = {n: copy_of(n, reader, copies, views) for n in node.all_input_nodes}
        with reader.graph.inserting_before(reader):
            copies[node] = reader.graph.node_copy(node, args.__getitem__)
        views.add(copies[node].name)
    return copies[node]
