"""A graph of Dynamo as ATen operators with types: what torch.export's JSON can hold."""

from __future__ import annotations

import json

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from lathe import _archive, _composites, _graph_json, _shared_names


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
        with torch.no_grad(), _composites.kept_whole():
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
