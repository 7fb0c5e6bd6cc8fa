"""Models that are one graph already: of torch.export, and of torch.fx.symbolic_trace."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

from lathe import _archive, _shared_names
from lathe._handle import LatheError


def is_single(model):
    return isinstance(model, (torch.export.ExportedProgram, torch.fx.GraphModule))


def origin(model):
    is_exported = isinstance(model, torch.export.ExportedProgram)
    return "torch.export" if is_exported else "torch.fx"


def lower(model, calls, dynamic, project):
    """The graph as a document of torch.export's JSON, and as Python. Weights stay behind.

    A GraphModule is exported for the arguments of the call; with `dynamic` every size is a symbol.
    """
    if len(calls) > 1:
        raise LatheError(f"{origin(model)} makes one graph of one call, got {len(calls)} calls")
    if isinstance(model, torch.export.ExportedProgram):
        if dynamic is not None:
            raise LatheError("an ExportedProgram has its sizes already: 'dynamic' is for modules")
        program, python = model, model.graph_module.print_readable(print_output=False)
    else:
        args, kwargs = calls[0]
        shapes = pytree.tree_map(_every_size, (args, kwargs)) if dynamic else (None, None)
        program = torch.export.export(model, args, kwargs, dynamic_shapes=_by_name(
            model, args, *shapes) if dynamic else None)
        python = model.print_readable(print_output=False)
    return _document(program, project), python + "\n"


def _every_size(value):
    if isinstance(value, torch.Tensor):
        return {i: torch.export.Dim.AUTO for i in range(value.dim())}
    return None


def _by_name(model, args, of_args, of_kwargs):
    """Shapes by the names of the placeholders, which is what export takes of both kinds."""
    names = [node.target for node in model.graph.nodes if node.op == "placeholder"]
    return {**dict(zip(names, of_args)), **of_kwargs}


def _document(program, project):
    """What torch.export.save writes of the graph."""
    with tempfile.TemporaryDirectory() as folder:
        stock = Path(folder) / "program.pt2"
        torch.export.save(program, stock)
        with zipfile.ZipFile(stock) as archive:
            name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
            document = json.loads(archive.read(name))
    _archive.change_traces(document, lambda text: _shared_names.rewrite_frames(text, project))
    return document
