"""Composite ops that stay whole while AOTAutograd traces, so that a graph looks like the model."""

import contextlib
import logging

import torch

log = logging.getLogger("lathe.backend")
aten = torch.ops.aten

# Composite ops that Lathe knows whole: as PyTorch decomposes them they are longer, and attention
# becomes a call that only the CPU has. Of those that differ while training, the argument that says
# it: kept then, a norm's running statistics would not be among what the graph changes.
KEPT = {
    aten.linear.default: None,
    aten.matmul.default: None,
    aten.scaled_dot_product_attention.default: None,
    aten.layer_norm.default: None,
    aten.group_norm.default: None,
    aten.rms_norm.default: None,
    aten.conv1d.default: None,
    aten.conv2d.default: None,
    aten.conv3d.default: None,
    aten.softmax.int: None,
    aten.log_softmax.int: None,
    aten.batch_norm.default: "training",
    aten.upsample_nearest2d.vec: None,
    aten.upsample_bilinear2d.vec: None,
}


def kept(op, training):
    """Says NotImplemented, by which PyTorch leaves a call whole."""
    from torch._export.utils import _get_decomp_for_cia

    decompose = _get_decomp_for_cia(op)
    names = [argument.name for argument in op._schema.arguments]

    def call(*args, **kwargs):
        if training is not None and dict(zip(names, args), **kwargs).get(training, False):
            return decompose(*args, **kwargs)
        return NotImplemented

    return call


@contextlib.contextmanager
def kept_whole():
    """Where PyTorch leaves the ops of KEPT alone. It is a private door of torch.export: where it
    is not there or does not open, graphs are longer, and right.
    """
    with contextlib.ExitStack() as stack:
        try:
            from torch.export.exported_program import _override_composite_implicit_decomp

            table = {op: kept(op, training) for op, training in KEPT.items()}
            stack.enter_context(_override_composite_implicit_decomp(table))
        except (ImportError, AttributeError, RuntimeError) as error:
            log.info("composite ops are decomposed: %s", error)
        yield
