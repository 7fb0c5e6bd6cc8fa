"""Numbers that a graph holds as tensors of the CPU, moved to the device of what reads them, and
written into the graph there.

Eager takes a tensor of no dims from the CPU beside tensors of any device. That is how masks are
written: `mask[i:j] = 3` becomes a constant, a copy of it, and a fill with the copy; and scales:
`torch.sqrt(torch.tensor(64.0))`. Lathe's pieces are of one device.
"""

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from lathe._encoding import encoding_of
from lathe.backend.pieces import is_mutating


def move_scalars(graph, constants, device):
    """constants: the tensors of the graph's last placeholders, by name; those that move change."""
    for node in numbers_to_move(graph, constants, device) if device.type != "cpu" else ():
        node.meta["val"] = moved(constants.get(node.name, node.meta["val"]), device)
        if node.op == "placeholder":
            constants[node.name] = node.meta["val"]


def inline_scalars(graph, constants, device):
    """Makes calls of constants of no dims: Lathe's passes see what they are."""
    for node in [n for n in graph.nodes if n.op == "placeholder" and n.name in constants]:
        value = constants[node.name]
        is_plain = value.dim() == 0 and value.device == device and encoding_of(value) is None
        if not is_plain or any(user.op == "output" or is_mutating(user) for user in node.users):
            continue
        with graph.inserting_after(list(graph.find_nodes(op="placeholder"))[-1]):
            made = graph.call_function(torch.ops.aten.full.default, ([], number_of(value)),
                                       {"dtype": value.dtype, "device": device})
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
        graph.erase_node(node)
        del constants[node.name]


def number_of(tensor):
    with unset_fake_temporarily():
        return tensor.item()


def numbers_to_move(graph, constants, device):
    """Numbers that are constants, and those that are made of such alone, of which all that others
    read works on the device."""

    def is_number(node):
        value = constants.get(node.name) if node.op == "placeholder" else node.meta.get("val")
        return isinstance(value, torch.Tensor) and value.dim() == 0 and value.is_cpu

    def may_move(node):
        return node.op == "placeholder" or is_pure(node)

    nodes = [node for node in graph.nodes if may_move(node) and is_number(node)]
    while True:
        kept = set(nodes)
        kept = [node for node in nodes
                if (node.op == "placeholder" or node.all_input_nodes)
                and all(n in kept for n in node.all_input_nodes)
                and all(n in kept or works_on(n, device) for n in node.users)]
        if len(kept) == len(nodes):
            return kept
        nodes = kept


def is_pure(node):
    """A call that gives the same each time, wherever its operands are."""
    return is_repeatable(node) and "device" not in node.kwargs


def is_repeatable(node):
    """A call that gives the same each time, and changes nothing."""
    return (node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
            and torch.Tag.nondeterministic_seeded not in node.target.tags
            and not node.target._schema.is_mutable)


def works_on(node, device):
    values = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return bool(tensors) and all(tensor.device == device for tensor in tensors)


def moved(tensor, device):
    """The number there; of a tensor that PyTorch only imagines, one that it imagines there."""
    mode = getattr(tensor, "fake_mode", None)
    with unset_fake_temporarily() if mode is None else mode:
        return tensor.to(device)
