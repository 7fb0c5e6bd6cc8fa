"""A graph of Dynamo as ATen operators with types: what torch.export's JSON can hold."""

from __future__ import annotations

import contextlib
import json

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from lathe import _archive, _graph_json, _shared_names

_aten = torch.ops.aten
# Composite operators that stay whole, so that a graph looks like the model that was written.
_KEPT = [
    _aten.conv1d.default,
    _aten.conv2d.default,
    _aten.conv3d.default,
    _aten.layer_norm.default,
    _aten.linear.default,
    _aten.matmul.default,
    _aten.scaled_dot_product_attention.default,
    _aten.softmax.int,
]


def lower(gm, example_inputs, project):
    """The graph as (a document of torch.export's JSON, None), or (None, why there is none).

    Traced without gradients, by AOTAutograd's inference path: its `copy_` into inputs stays, and no
    node of it is run on data. `gm` is not changed. Guards that the trace adds are PyTorch's own:
    every backend that goes through AOTAutograd has them.
    """
    written = []

    def take(graph, _):
        written.append(_graph_json.write(graph))
        return make_boxed_func(graph.forward)

    trace = aot_autograd(
        fw_compiler=take, inference_compiler=take, keep_inference_input_mutations=True
    )
    try:
        with torch.no_grad(), _composites_whole():
            trace(gm, example_inputs)
    except Exception as error:  # whatever PyTorch raises: the capture goes on without this graph
        return None, _reason(error)
    if not written:
        return None, "AOTAutograd made no graph of it"
    document = json.loads(json.dumps(written[-1], allow_nan=False))
    _archive.change_traces(document, lambda text: _shared_names.rewrite_frames(text, project))
    return document, None


def _reason(error):
    cause = error.__cause__ or error
    text = str(cause).strip() or str(error).strip()
    return f"{type(cause).__name__}: {text.splitlines()[0]}" if text else type(cause).__name__


@contextlib.contextmanager
def _composites_whole():
    # Private: without it graphs are decomposed further, and as right.
    try:
        from torch.export.exported_program import _override_composite_implicit_decomp
    except ImportError:
        yield
        return
    with _override_composite_implicit_decomp({op: _not_decomposed for op in _KEPT}):
        yield


def _not_decomposed(*_, **__):
    return NotImplemented
