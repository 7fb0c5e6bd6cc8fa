"""A graph in memory, with PyTorch's tensors for weights, as a source of a compiled model."""

import ctypes
import json

from lathe._compiled import address
from lathe._handle import LatheError
from lathe._library import TORCH_DTYPES, Weight


class RefusedCalls(LatheError):
    """Calls of the graph that Lathe has nothing for: "node", "target", "reason" and "code" of
    each.
    """

    def __init__(self, calls, message):
        super().__init__(message)
        self.calls = calls


class Graph:
    """Model JSON as text, and a tensor for each name of its weights: on the CPU or, contiguous, on
    the GPU of target "cuda".

    The tensors are read where they are for as long as the model lives, so it keeps them. They
    are of the library's own dtypes (_encoding.py).
    """

    def __init__(self, text, weights):
        self.text, self.weights = text.encode(), weights

    def open(self, library, options):
        table = (Weight * len(self.weights))()
        for entry, (name, tensor) in zip(table, self.weights.items()):
            rank = tensor.dim()
            entry.name = name.encode()
            entry.data = address(tensor)
            entry.dtype = TORCH_DTYPES.index(str(tensor.dtype).removeprefix("torch."))
            entry.rank = rank
            entry.shape = (ctypes.c_int64 * rank)(*tensor.shape)
            entry.strides = (ctypes.c_int64 * rank)(*tensor.stride())
        return library.lathe_load_memory(
            self.text, len(self.text), ctypes.addressof(table), len(table), options
        )

    def blame(self, library, model):
        calls = json.loads(library.lathe_refusals(model))
        if calls:
            raise RefusedCalls(calls, library.lathe_error(model).decode().rstrip("\n"))
