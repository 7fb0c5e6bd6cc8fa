"""A compiled model at the sizes that it is bound to, run on tensors that fit them."""

import ctypes
import functools
import json
import sys

import numpy as np

from lathe._handle import LatheError, open_handle, raise_failure
from lathe._library import NUMPY_DTYPES, TORCH_DTYPES, library

NO_BYTES = ctypes.c_char * 0  # fits into every buffer


class Slot:
    """An input or output of a compiled model."""

    def __init__(self, info):
        self.name, self.dtype = info.name.decode(), info.dtype
        self.shape = tuple(info.shape[: info.rank])
        self.numpy_dtype = np.dtype(NUMPY_DTYPES[info.dtype])

    @functools.cached_property
    def torch_dtype(self):
        return getattr(sys.modules["torch"], TORCH_DTYPES[self.dtype])

    @functools.cached_property
    def strides(self):
        """Of row-major memory, in elements."""
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.insert(0, strides[0] * max(size, 1))
        return tuple(strides[: len(self.shape)])

    @functools.cached_property
    def new_torch(self):
        """Makes a tensor on device=... as torch.empty does, in two thirds of its time."""
        empty = sys.modules["torch"].empty_strided
        return functools.partial(empty, self.shape, self.strides, dtype=self.torch_dtype)

    def misfit(self, index, tensor):
        """What is wrong with a tensor."""
        names = NUMPY_DTYPES if isinstance(tensor, np.ndarray) else TORCH_DTYPES
        found = str(tensor.dtype).replace("torch.", "")
        return (
            f"input {index} ('{self.name}') is {names[self.dtype]}{list(self.shape)}, "
            f"got {found}{list(tensor.shape)}"
        )


class Compiled:
    """A model at fixed sizes: one handle of the library.

    like: the same model at other sizes, whose mutated buffers it shares.
    """

    def __init__(self, path, options, dims, like=None):
        self.library = library()
        text = json.dumps({**options, "dims": dims}).encode()
        model = self.library.lathe_load(path.encode(), text)
        if not model:
            raise MemoryError("out of memory")
        self.handle = open_handle(self.library, model, options.get("target") == "cuda")
        error = self.library.lathe_error(model)
        if error is not None:
            raise_failure(self.library.lathe_last_status(model), error)
        self.model = model  # lives as long as the handle
        self.info = json.loads(self.library.lathe_info(model))
        if like is not None and self.info["mutations"]:
            status = self.library.lathe_share_state(model, like.model)
            if status != 0:
                raise_failure(status, self.library.lathe_error(model))
        self.inputs, self.outputs = self.slots("input", model), self.slots("output", model)
        leaves = self.info["signature"]["outputs"] if self.info["signature"] else []
        # A leaf of the result is an output by its number, or a size or constant by its value.
        self.results = [(f.get("tensor"), f.get("value", f.get("constant"))) for f in leaves]
        self.result_sizes = [f.get("size") for f in leaves]
        self.bound = tuple(self.info["dims"].values())
        self.input_pointers = ctypes.c_void_p * len(self.inputs)
        self.output_pointers = ctypes.c_void_p * len(self.outputs)

    def bind(self, dims):
        """The sizes of the runs that follow, with option dynamic."""
        sizes = tuple(dims.values())
        if sizes == self.bound:
            return
        numbers = (ctypes.c_int64 * len(sizes))(*sizes)
        status = self.library.lathe_bind(self.model, ctypes.addressof(numbers), len(sizes))
        if status != 0:
            raise_failure(status, self.library.lathe_error(self.model))
        self.bound = sizes
        self.inputs, self.outputs = (self.slots(side, self.model) for side in ("input", "output"))

    def slots(self, side, model):
        count = getattr(self.library, f"lathe_num_{side}s")(model)
        info_at = getattr(self.library, f"lathe_{side}")
        return [Slot(info_at(model, i).contents) for i in range(count)]

    def run(self, inputs):
        """Runs on contiguous tensors; returns new outputs, PyTorch's if an input is."""
        like = None  # the first of PyTorch's tensors
        input_pointers, output_pointers = self.input_pointers(), self.output_pointers()
        for i, (tensor, slot) in enumerate(zip(inputs, self.inputs)):
            is_array = isinstance(tensor, np.ndarray)
            dtype = slot.numpy_dtype if is_array else slot.torch_dtype
            if tensor.dtype != dtype or tensor.shape != slot.shape:
                raise LatheError(slot.misfit(i, tensor))
            input_pointers[i] = address(tensor)
            if like is None and not is_array:
                like = tensor
        outputs = []
        device = None if like is None else like.device
        for i, slot in enumerate(self.outputs):
            if device is None:
                output = np.empty(slot.shape, slot.numpy_dtype)
            else:
                output = slot.new_torch(device=device)
            output_pointers[i] = address(output)
            outputs.append(output)
        pointers = ctypes.addressof(input_pointers), ctypes.addressof(output_pointers)
        self.handle.run(*pointers, stream_of(like))
        return outputs


def address(tensor):
    return array_address(tensor) if isinstance(tensor, np.ndarray) else tensor.data_ptr()


def array_address(array):
    # ctypes finds plain writable memory in a quarter of the time that NumPy takes to describe it.
    if array.flags.carray:
        return ctypes.addressof(NO_BYTES.from_buffer(array))
    return array.ctypes.data


def stream_of(tensor):
    """The handle of PyTorch's current stream for a tensor on a GPU; 0: a run is waited for."""
    if tensor is None or not tensor.is_cuda:
        return 0
    # The default stream's handle is 0, but its name among CUDA's streams is 1.
    return sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream or 1
