"""Lathe from Python.

    lathe.export(model, args, path="m.pt2")   write a model with sample inputs and expected outputs
    lathe.load("m.pt2")(x)                    run one on numpy arrays or torch tensors
    lathe.capture(model, args, path="m.zip")  write what Dynamo sees: graphs, guards, graph breaks
    lathe.explain(model, args)                the same as text
    lathe.calls_through                       what calls go through, as a sentence

Each name is imported at its first use: exporting needs PyTorch, running does not.
"""

import importlib

_HOMES = {
    "Exported": "lathe._export",
    "LatheError": "lathe._handle",
    "Model": "lathe._load",
    "calls_through": "lathe._extension",
    "capture": "lathe.capture",
    "explain": "lathe.capture.explain",
    "export": "lathe._export",
    "load": "lathe._load",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'lathe' has no attribute '{name}'")
    home = importlib.import_module(_HOMES[name])
    # lathe.capture is a module that can be called.
    value = home if _HOMES[name] == f"lathe.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__():
    return __all__
