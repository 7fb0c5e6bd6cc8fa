"""Lathe: export PyTorch models, and run them compiled.

    import lathe
    lathe.export(model, (x,), path="m.pt2")  # needs PyTorch
    y = lathe.load("m.pt2", threads=2)(x)    # does not
"""

from lathe.load import LatheError, Model, load

__all__ = ["LatheError", "Model", "export", "load"]


def __getattr__(name):
    # PyTorch is imported only by those who export.
    if name == "export":
        from lathe.export import export

        return export
    raise AttributeError(f"module 'lathe' has no attribute '{name}'")
