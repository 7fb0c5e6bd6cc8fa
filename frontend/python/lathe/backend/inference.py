"""From a graph of Dynamo's to a functional one of ATen calls, by AOTAutograd's inference path."""

import contextlib
import logging

import torch
from torch._dynamo.backends.common import aot_autograd

from lathe.backend.compile import compile_graph
from lathe.backend.overlap import eager_on_overlap

log = logging.getLogger("lathe.backend")
aten = torch.ops.aten


class NeedsGradients(Exception):
    """AOTAutograd asks for a graph that has a backward."""


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


def refuse_gradients(gm, example_inputs):
    raise NeedsGradients(
        "an input or parameter needs gradients, and Lathe runs inference alone: call it under "
        "torch.no_grad() or torch.inference_mode()"
    )


def compile_inference(gm, example_inputs, options, report):
    """What runs the graph. NeedsGradients when it is one to train with."""
    mutated = []

    def compile_functional(functional, _):
        metadata = torch._guards.TracingContext.get().fw_metadata
        mutated.extend(i for i, info in enumerate(metadata.input_info) if info.mutates_data)
        placeholders = [n for n in functional.graph.nodes if n.op == "placeholder"]
        static = set(metadata.static_input_indices)
        weights = {}
        if len(placeholders) == len(example_inputs) and options.weights != "live":
            changed = set(mutated)
            weights = {
                i: example_inputs[i]
                for i in sorted(static - changed)
                if isinstance(example_inputs[i], torch.Tensor)
            }
        return compile_graph(functional, example_inputs, weights, options, report)

    with kept_whole():
        call = aot_autograd(
            fw_compiler=refuse_gradients,
            inference_compiler=compile_functional,
            keep_inference_input_mutations=True,
        )(gm, example_inputs)
    return eager_on_overlap(call, gm, example_inputs, mutated, report) if mutated else call
