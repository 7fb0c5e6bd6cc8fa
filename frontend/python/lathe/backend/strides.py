"""as_strided reads the memory of a tensor, of which views show parts; here views are values."""

import operator

import torch

as_strided = torch.ops.aten.as_strided.default


def settle_strides(graph):
    """Lets as_strided read what its views are of. Where that is an input, whose memory each call
    may bring with other things around, they are eager's: the reasons, by name.
    """
    refused = {}
    for node in graph.find_nodes(op="call_function", target=as_strided):
        source, *rest = node.args
        offset = rest[2] if len(rest) > 2 else node.kwargs.get("storage_offset")
        views, base = [], source
        while (viewed := operand_of_view(base)) is not None:
            views.append(base)
            base = viewed
        if base.op == "placeholder":
            if views or offset is not None:
                reason = "it reads the memory around an input"
                refused.update((n.name, reason) for n in (node, *views))
        elif views:
            offset = source.meta["val"].storage_offset() if offset is None else offset
            if isinstance(offset, int):
                node.args, node.kwargs = (base, *rest[:2], offset), {}
    return refused


def operand_of_view(node):
    """What the node is a view of; None where it is none."""
    if node.op == "call_function" and node.target is operator.getitem:
        return operand_of_view(node.args[0])
    schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
    if schema is None or not schema.returns or schema.returns[0].alias_info is None:
        return None
    return None if schema.is_mutable else node.args[0]
