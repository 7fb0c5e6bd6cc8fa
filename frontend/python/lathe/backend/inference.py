"""From a graph of Dynamo's to a functional one of ATen calls, by AOTAutograd's inference path."""

import contextlib

import torch
from torch._dynamo.backends.common import aot_autograd

from lathe._composites import kept_whole
from lathe.backend.compile import compile_graph
from lathe.backend.overlap import eager_on_overlap


class NeedsGradients(Exception):
    """AOTAutograd asks for a graph that has a backward."""


# Calls that derivatives of a transform of torch.func, or of autograd, begin with in a graph.
DERIVATIVES = ("_grad_increment_nesting", "_jvp_increment_nesting", "_autograd_grad", "grad")


def differentiates(gm):
    """Whether derivatives are traced into the graph: calls that are left whole have none."""
    graphs = (m.graph for m in gm.modules() if isinstance(m, torch.fx.GraphModule))
    return any(getattr(node.target, "__name__", None) in DERIVATIVES
               for graph in graphs for node in graph.nodes if node.op == "call_function")


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

    with contextlib.nullcontext() if differentiates(gm) else kept_whole():
        call = aot_autograd(
            fw_compiler=refuse_gradients,
            inference_compiler=compile_functional,
            keep_inference_input_mutations=True,
        )(gm, example_inputs)
    return eager_on_overlap(call, gm, example_inputs, mutated, report) if mutated else call
