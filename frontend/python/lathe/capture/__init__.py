"""Captures: what Dynamo made of a model, and what it will do with the next call.

    lathe.capture(model, args, path="m.bundle")    run a model and write all that Dynamo saw
    lathe.explain(model, args)                      the same as text, nothing written
    lathe.capture.replay("m.bundle", calls)         predict which calls recompile, without PyTorch

The folder is the function too: `lathe.capture` is called, and has the names below. Each is imported
at its first use; reading and replaying need no PyTorch.
"""

import importlib
import sys
import types

_HOMES = {
    "Bundle": "lathe.capture.bundle",
    "Captured": "lathe.capture.capture",
    "GraphBreaks": "lathe.capture.capture",
    "describe": "lathe.capture.values",
    "replay": "lathe.capture.replayer",
}

__all__ = sorted(_HOMES)


class _Capture(types.ModuleType):
    """The module, which can be called."""

    def __call__(self, *args, **kwargs):
        return importlib.import_module("lathe.capture.capture").capture(*args, **kwargs)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'lathe.capture' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return __all__


sys.modules[__name__].__class__ = _Capture
