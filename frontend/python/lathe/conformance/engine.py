"""How a function is run by a backend: through torch.compile, or exported and loaded."""

import importlib
import inspect
import io
import pathlib
import tempfile

import torch
from torch.utils import _pytree as pytree


class Refused(Exception):
    """The backend says that it cannot."""


class Untraced(Exception):
    """PyTorch gives no graph to any backend."""


# Modules that announce backends where no entry point of the package does.
ANNOUNCED_BY = {"lathe": "lathe.backend", "openvino": "openvino.torch", "zentorch": "zentorch"}


def make(name, options):
    """An engine by the name of its backend: takes (module, args, kwargs, calls) and gives what
    to call, with these arguments and those of `calls`, whose sizes may be others.
    """
    if name == "export":
        return Export(options)
    if name in ANNOUNCED_BY:
        importlib.import_module(ANNOUNCED_BY[name])
    return Compile(name, options)


class Compile:
    def __init__(self, name, options):
        self.chosen = {"backend": name} | ({"options": options} if options else {})

    def prepare(self, module, args, kwargs, calls=()):
        dynamic = bool(calls)
        torch._dynamo.reset()
        compiled = torch.compile(module, fullgraph=True, dynamic=dynamic, **self.chosen)

        def call(*args, **kwargs):
            try:
                return compiled(*args, **kwargs)
            except Exception as error:
                if fails_without_backend(module, args, kwargs, dynamic):
                    raise Untraced(first_line(error)) from None
                if is_refusal(error):
                    raise Refused(first_line(error)) from None
                raise

        return call

    def without_backend(self, module, args, kwargs):
        """PyTorch's own answer from the graph that a backend gets."""
        torch._dynamo.reset()
        return torch.compile(module, backend="aot_eager", fullgraph=True)(*args, **kwargs)


def fails_without_backend(module, args, kwargs, dynamic):
    """Whether torch.compile has no graph to give, or eager fails."""
    torch._dynamo.reset()
    args, kwargs = copies((args, kwargs))
    try:
        torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=dynamic)(*args, **kwargs)
    except Exception:
        return True
    return False


def is_refusal(error):
    """Said while compiling, by the backend: not an error of a run."""
    return isinstance(error, torch._dynamo.exc.TorchDynamoException) or (
        error.__cause__ is not None and is_refusal(error.__cause__)
    )


class Export:
    """Lathe on an archive as torch.export.save writes it."""

    def __init__(self, options):
        self.options = options

    def prepare(self, module, args, kwargs, calls=()):
        import lathe

        if archive := getattr(module, "archive", None):
            model = refusing(lathe.LatheError, lathe.load)(archive, weights=module.weights,
                                                           **self.options)
            return refusing(lathe.LatheError, model)
        shapes = dynamic_shapes(module, args, kwargs, calls) if calls else None
        try:
            program = torch.export.export(module, tuple(args), dict(kwargs), dynamic_shapes=shapes)
            data = io.BytesIO()
            torch.export.save(program, data)
        except Exception as error:
            raise Untraced(first_line(error)) from None
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "case.pt2")
            file.write_bytes(data.getvalue())
            try:
                model = refusing(lathe.LatheError, lathe.load)(file, **self.options)
            except Refused as refusal:  # the same words in every run
                raise Refused(str(refusal).replace(f"{folder}/", "")) from None
        return refusing(lathe.LatheError, model)


    def without_backend(self, module, args, kwargs):
        return torch.export.export(module, tuple(args), dict(kwargs)).module()(*args, **kwargs)


def refusing(kind, function):
    """The function, whose errors of the kind are refusals."""

    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except kind as error:
            raise Refused(first_line(error)) from None

    return call


def dynamic_shapes(module, args, kwargs, calls):
    """torch.export's word for: sizes that another call has otherwise may change."""
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    others = [pytree.tree_leaves(call) for call in calls]

    def dims(i, leaf):
        if not isinstance(leaf, torch.Tensor):
            return None
        changes = [any(o[i].shape[d] != size for o in others) for d, size in enumerate(leaf.shape)]
        return tuple(torch.export.Dim.AUTO if c else None for c in changes)

    args, kwargs = pytree.tree_unflatten([dims(i, x) for i, x in enumerate(leaves)], spec)
    shapes, at = dict(kwargs), 0
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            shapes[name] = tuple(args[at:])
        elif at < len(args):
            shapes[name] = args[at]
        at += 1
    return shapes


def copies(tree):
    """Tensors of their own, with the strides of the given ones."""
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), tree)


def first_line(error):
    """Of an error's text what a table shows, the innermost cause of a compile error first."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:4])}"[:400]
