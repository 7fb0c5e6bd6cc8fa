"""Numbers that a graph holds as tensors of the CPU, moved to the device of what reads them.

Eager takes a tensor of no dims from the CPU beside tensors of any device. That is how masks are
written: `mask[i:j] = 3` becomes a constant, a copy of it, and a fill with the copy. Lathe's pieces
are of one device.
"""

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

aten = torch.ops.aten
COPIES = (aten.lift_fresh_copy.default, aten.clone.default, aten.detach.default, aten.alias.default)


def move_scalars(graph, constants, device):
    """constants: the tensors of the graph's last placeholders, by name; those that move change."""
    for node in [n for n in graph.nodes if n.op == "placeholder" and n.name in constants]:
        tensor = constants[node.name]
        if tensor.dim() > 0 or not tensor.is_cpu or device.type == "cpu":
            continue
        copies = copies_read_on(node, device)
        if copies is None:
            continue
        constants[node.name] = node.meta["val"] = moved(tensor, device)
        for copy in copies:
            copy.meta["val"] = moved(copy.meta["val"], device)


def copies_read_on(node, device):
    """The calls that only copy it, when all others that read it or a copy work on the device."""
    copies, to_visit = [], [node]
    while to_visit:
        for user in to_visit.pop().users:
            if user.target in COPIES:
                copies.append(user)
                to_visit.append(user)
            elif user.op != "call_function" or not works_on(user, device):
                return None
    return copies


def works_on(node, device):
    values = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return bool(tensors) and all(tensor.device == device for tensor in tensors)


def moved(tensor, device):
    """The number there; of a tensor that PyTorch only imagines, one that it imagines there."""
    mode = getattr(tensor, "fake_mode", None)
    with unset_fake_temporarily() if mode is None else mode:
        return tensor.to(device)
