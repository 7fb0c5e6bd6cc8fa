"""A handle of the library that any number of threads may use, and what is called in its name.

Each class here has a twin in the extension (call.cpp), which takes its place where there is one.
"""

import threading

from lathe import _extension
from lathe._library import OUT_OF_MEMORY, address_of


class LatheError(RuntimeError):
    """What Lathe says of a wrong model, option or argument."""


def raise_failure(status, text):
    """Raises what the library says of a call."""
    kind = MemoryError if status == OUT_OF_MEMORY else LatheError
    raise kind(text.decode().rstrip("\n"))


class Handle:
    """Owns a model of the library."""

    def __init__(self, library, model, has_streams):
        self.library, self.model, self.has_streams = library, model, has_streams
        self.lock = threading.Lock()

    def __del__(self):
        self.library.lathe_free(self.model)

    @property
    def last_run_ms(self):
        return self.library.lathe_last_run_ms(self.model)

    def run(self, sizes, count, inputs, outputs, stream):
        """Runs at sizes on arrays of pointers, given by their addresses."""
        with self.lock:
            if self.has_streams:
                self.library.lathe_set_stream(self.model, stream)
            if count:
                status = self.library.lathe_run_shaped(self.model, sizes, count, inputs, outputs)
            else:
                status = self.library.lathe_run(self.model, inputs, outputs)
            if status == 0:
                return
            text = self.library.lathe_error(self.model)
        raise_failure(status, text)

    def alone(self, function):
        """What it returns, called while no other thread uses the model."""
        with self.lock:
            return function()


class Caller:
    """Calling it calls its `call`."""

    planned = None  # the handle whose plans a call may fit: the extension's way

    def __init_subclass__(cls):
        cls.__call__ = cls.call


def open_handle(library, model, has_streams):
    if _extension.module is None:
        return Handle(library, model, has_streams)
    names = ("run", "run_shaped", "set_stream", "error", "last_run_ms", "free")
    found = (getattr(library, f"lathe_{name}", None) for name in names)
    functions = tuple(0 if function is None else address_of(function) for function in found)
    return _extension.module.Handle(functions, model, has_streams, raise_failure)


if _extension.module is not None:
    Caller = _extension.module.Caller  # noqa: F811
