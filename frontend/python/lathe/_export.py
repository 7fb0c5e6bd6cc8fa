"""lathe.export: a stock PyTorch archive that can be shared, with data to check it by."""

from __future__ import annotations

import copy
import inspect
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.utils import _pytree as pytree

from lathe import _archive, _shared_names


@dataclass(frozen=True)
class Exported:
    """The files that `export` wrote."""

    model: Path  # a PT2 archive as torch.export.save writes it
    inputs: Path  # .npz: the tensors of (args, kwargs), flattened, named 0, 1, ...
    outputs: Path  # .npz: the tensors that the model returned for them, likewise
    mutated: Path | None  # .npz: buffers and inputs that the call changed, by name; None: none


def export(model, args, kwargs=None, dynamic_shapes=None, *, path, core=False, project="."):
    """Exports `model` for Lathe and runs it once.

    Writes PATH (a .pt2 archive), and beside it PATH's stem with .inputs.npz and .outputs.npz, and
    .mutated.npz when the call changes buffers or inputs. `args`, `kwargs` and `dynamic_shapes` are
    torch.export.export's. With `core` the graph is decomposed to core ATen operators. Source files
    in stack traces become relative to `project`; files elsewhere keep their place in their package
    (torch/nn/...) or their bare name, so that no path of this machine remains.
    """
    path = Path(path)
    if path.suffix != ".pt2":
        raise ValueError(f"the path must end in .pt2, got '{path}'")
    kwargs = dict(kwargs or {})
    program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    if core:
        program = program.run_decompositions()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # The archive's root folder is named after the file.
        stock = Path(folder) / path.name
        torch.export.save(program, stock)
        _archive.rewrite(stock, path, lambda text: _shared_names.rewrite_frames(text, project))

    inputs, outputs, mutated = _run(model, args, kwargs)
    files = Exported(path, path.with_suffix(".inputs.npz"), path.with_suffix(".outputs.npz"),
                     path.with_suffix(".mutated.npz") if mutated else None)
    _archive.save_arrays(files.inputs, {str(i): value for i, value in enumerate(inputs)})
    _archive.save_arrays(files.outputs, {str(i): value for i, value in enumerate(outputs)})
    if files.mutated:
        _archive.save_arrays(files.mutated, mutated)
    return files


def _run(model, args, kwargs):
    """Inputs, outputs and changed buffers and inputs of one call on copies, as arrays."""
    model = copy.deepcopy(model)
    args, kwargs = copy.deepcopy((args, kwargs))
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    before = {name: _array(value) for name, value in state.items()}
    names = _leaf_names(model, args, kwargs)
    inputs = [_array(leaf) for leaf in names.values()]
    with torch.no_grad():
        result = model(*args, **kwargs)
    outputs = [_array(leaf) for leaf in pytree.tree_leaves(result) if _is_tensor(leaf)]
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    mutated = {name: _array(value) for name, value in state.items()
               if not _same(before[name], _array(value))}
    mutated.update({name: _array(leaf) for (name, leaf), old in zip(names.items(), inputs)
                    if not _same(old, _array(leaf))})
    return inputs, outputs, mutated


def _leaf_names(model, args, kwargs):
    """The tensor leaves of (args, kwargs), in order, by the names that export gives them."""
    parameters = list(inspect.signature(model.forward).parameters.values())
    named = []
    for i, value in enumerate(args):
        variadic = next((k for k, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), None)
        if variadic is not None and i >= variadic:
            named.append((f"{parameters[variadic].name}_{i - variadic}", value))
        else:
            named.append((parameters[i].name, value))
    names = {}
    for name, value in [*named, *kwargs.items()]:
        for path, leaf in pytree.tree_flatten_with_path(value)[0]:
            if _is_tensor(leaf):
                parts = [re.sub(r"\W", "", pytree.keystr((part,))) for part in path]
                names["_".join([name, *parts])] = leaf
    return names


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _array(tensor):
    """A copy as numpy; bfloat16 as its raw 16-bit words, which numpy lacks a type for."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy().copy()
    return tensor.numpy().copy()


def _same(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()
