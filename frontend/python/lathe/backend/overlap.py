"""Graphs that change an input which shares memory with another.

A graph is compiled for inputs that lie apart, and nothing guards that a later call's do: views of
one tensor would get answers that eager does not give. Where memory meets, the graph that Dynamo
captured runs as it stands, in-place calls and all.
"""

import torch


def extent(tensor):
    """(first byte, one past the last) that its elements reach; empty ones reach none."""
    if tensor.numel() == 0:
        return 0, 0
    start = tensor.data_ptr()
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return start, start + (reach + 1) * tensor.element_size()


def overlaps(args, mutated):
    """Whether one of the `mutated`, by position, shares memory with any other tensor."""
    extents = [extent(a) if isinstance(a, torch.Tensor) else (0, 0) for a in args]
    for i in mutated:
        begin, end = extents[i]
        for k, (other_begin, other_end) in enumerate(extents):
            if k != i and begin < other_end and other_begin < end:
                return True
    return False


def eager_on_overlap(call, gm, example_inputs, mutated, report):
    """`call`, and the captured graph in eager where inputs overlap."""
    tensors = [i for i, a in enumerate(example_inputs) if isinstance(a, torch.Tensor)]
    if overlaps(example_inputs, tensors):
        # AOTAutograd has merged them: the compiled graph is for calls that overlap alike.
        calls = sum(n.op.startswith("call") for n in gm.graph.nodes)
        report.whole_graph("an input that the graph changes shares memory with another", calls)
        return gm.forward

    def guarded(*args):
        return gm.forward(*args) if overlaps(args, mutated) else call(*args)

    return guarded
