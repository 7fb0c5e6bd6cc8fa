"""A model of the library at the sizes of a call, run on tensors that fit them."""

import ctypes
import functools
import json
import re
import sys
import typing

import numpy as np

from lathe._handle import LatheError, open_handle, raise_failure
from lathe._library import NUMPY_DTYPES, TORCH_DTYPES, library

NO_BYTES = ctypes.c_char * 0  # fits into every buffer
MAX_SEEN = 64  # sizes of which is known what a call takes and gives
LINEAR_DIM = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?")


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

    def empty(self, shape, like):
        """A new tensor: an array where no tensor of PyTorch's is like it."""
        if like is None:
            return np.empty(shape, self.numpy_dtype)
        return sys.modules["torch"].empty(shape, dtype=self.torch_dtype, device=like.device)

    def misfit(self, index, tensor):
        """What is wrong with a tensor."""
        names = NUMPY_DTYPES if isinstance(tensor, np.ndarray) else TORCH_DTYPES
        found = str(tensor.dtype).replace("torch.", "")
        return (
            f"input {index} ('{self.name}') is {names[self.dtype]}{list(self.shape)}, "
            f"got {found}{list(tensor.shape)}"
        )


class Sizes(typing.NamedTuple):
    """What a run at some sizes takes and gives."""

    sizes: tuple  # of each of the model's dims
    numbers: ctypes.Array  # the same
    inputs: list  # of Slot
    outputs: list
    results: list  # a leaf of the result is an output by its number, or None and a value


class File:
    """A model's path, as a source of Compiled."""

    def __init__(self, path):
        self.path = str(path)

    def open(self, library, options):
        return library.lathe_load(self.path.encode(), options)

    def blame(self, library, model):
        """The library's message says all that is known."""


class Compiled:
    """A model of the library, and what it takes and gives at the sizes that came lately."""

    def __init__(self, source, options, dims):
        self.library = library()
        self.source = source  # weights in memory live as long
        text = json.dumps({**options, "dims": dims}).encode()
        model = source.open(self.library, text)
        if not model:
            raise MemoryError("out of memory")
        self.handle = open_handle(self.library, model, options.get("target") == "cuda")
        error = self.library.lathe_error(model)
        if error is not None:
            source.blame(self.library, model)
            raise_failure(self.library.lathe_last_status(model), error)
        self.model = model  # lives as long as the handle
        self.info = json.loads(self.library.lathe_info(model))
        leaves = self.info["signature"]["outputs"] if self.info["signature"] else []
        # An output by its number, or a constant, or a size that follows the dims.
        self.results = [(f.get("tensor"), f.get("constant"), linear(f.get("size"))) for f in leaves]
        self.run_sizes = frozenset(self.info.get("run_sizes", ()))  # symbols that a run finds
        self.seen = {}  # Sizes by their sizes, the latest last
        self.first = self.at(self.info["dims"])
        self.input_pointers = ctypes.c_void_p * len(self.first.inputs)
        self.output_pointers = ctypes.c_void_p * len(self.first.outputs)

    def at(self, dims):
        """The Sizes of a call. New ones are bound, which compiles when no program serves them."""
        sizes = tuple(dims.values())
        return self.seen.get(sizes) or self.handle.alone(lambda: self.bind(sizes, dims))

    def bind(self, sizes, dims):
        numbers = (ctypes.c_int64 * len(sizes))(*sizes)
        if sizes and sizes != tuple(self.info["dims"].values()):
            status = self.library.lathe_bind(self.model, ctypes.addressof(numbers), len(sizes))
            if status != 0:
                raise_failure(status, self.library.lathe_error(self.model))
        inputs, outputs = self.slots("input"), self.slots("output")
        results = [
            (i, constant if size.symbol is None else size.at(dims))
            for i, constant, size in self.results
            if size.symbol not in self.run_sizes
        ]
        found = Sizes(sizes, numbers, inputs, outputs, results)
        self.seen = {**dict(list(self.seen.items())[-MAX_SEEN + 1 :]), sizes: found}
        return found

    def artifacts(self):
        text = self.handle.alone(lambda: self.library.lathe_artifacts(self.model))
        return json.loads(text)

    def kernels(self):
        def ask():
            rows = json.loads(self.library.lathe_kernels(self.model))
            error = self.library.lathe_error(self.model)
            if error is not None:
                raise_failure(self.library.lathe_last_status(self.model), error)
            return rows

        return self.handle.alone(ask)

    def set_timing(self, on):
        self.handle.alone(lambda: self.library.lathe_set_timing(self.model, on))

    def slots(self, side):
        count = getattr(self.library, f"lathe_num_{side}s")(self.model)
        info_at = getattr(self.library, f"lathe_{side}")
        return [Slot(info_at(self.model, i).contents) for i in range(count)]

    def pointers_to(self, at, inputs):
        """The pointers to tensors that fit the inputs, and the first that is PyTorch's."""
        like = None
        input_pointers = self.input_pointers()
        for i, (tensor, slot) in enumerate(zip(inputs, at.inputs)):
            is_array = isinstance(tensor, np.ndarray)
            dtype = slot.numpy_dtype if is_array else slot.torch_dtype
            if tensor.dtype != dtype or tensor.shape != slot.shape:
                raise LatheError(slot.misfit(i, tensor))
            input_pointers[i] = address(tensor)
            if like is None and not is_array:
                like = tensor
        return input_pointers, like

    def run(self, at, inputs):
        """Runs on contiguous tensors; returns new outputs, PyTorch's if an input is."""
        input_pointers, like = self.pointers_to(at, inputs)
        outputs, output_pointers = [], self.output_pointers()
        device = None if like is None else like.device
        for i, slot in enumerate(at.outputs):
            if device is None:
                output = np.empty(slot.shape, slot.numpy_dtype)
            else:
                output = slot.new_torch(device=device)
            output_pointers[i] = address(output)
            outputs.append(output)
        self.handle.run(
            ctypes.addressof(at.numbers),
            len(at.sizes),
            ctypes.addressof(input_pointers),
            ctypes.addressof(output_pointers),
            stream_of(like),
        )
        return outputs

    def run_sized(self, at, inputs):
        """As run, of a model whose elements decide sizes: also the leaves of the result."""
        input_pointers, like = self.pointers_to(at, inputs)
        outputs, output_pointers = [], self.output_pointers()
        for i, slot in enumerate(at.outputs):
            is_known = all(size >= 0 for size in slot.shape)
            outputs.append(slot.empty(slot.shape, like) if is_known else None)
            output_pointers[i] = address(outputs[i]) if is_known else None

        def run():
            library, model = self.library, self.model
            numbers = ctypes.addressof(at.numbers), len(at.sizes)
            pointers = ctypes.addressof(input_pointers), ctypes.addressof(output_pointers)
            if stream_of(like):
                library.lathe_set_stream(model, stream_of(like))
            if at.sizes:
                status = library.lathe_run_shaped(model, *numbers, *pointers)
            else:
                status = library.lathe_run(model, *pointers)
            if status != 0:
                raise_failure(status, library.lathe_error(model))
            for i, slot in enumerate(at.outputs):
                if outputs[i] is not None:
                    continue
                info = library.lathe_output(model, i).contents
                outputs[i] = slot.empty(tuple(info.shape[: info.rank]), like)
                status = library.lathe_copy_output(model, i, address(outputs[i]))
                if status != 0:
                    raise_failure(status, library.lathe_error(model))
            return json.loads(library.lathe_run_sizes(model))

        found = {**dict(zip(self.info["dims"], at.sizes)), **self.handle.alone(run)}
        results = [
            (i, constant if size.symbol is None else size.at(found))
            for i, constant, size in self.results
        ]
        return outputs, results


class Linear(typing.NamedTuple):
    """A size that says what its symbol is: s0, 2*s0 or 2*s0 + 1."""

    symbol: str | None = None  # None: another size
    factor: int = 1
    offset: int = 0

    def solve(self, size):
        return (size - self.offset) // self.factor

    def at(self, dims):
        return self.factor * dims[self.symbol] + self.offset


def linear(dim):
    match = LINEAR_DIM.fullmatch(dim) if isinstance(dim, str) else None
    if match is None:
        return Linear()
    offset = int(match[4] or 0) * (-1 if match[3] == "-" else 1)
    return Linear(match[2], int(match[1] or 1), offset)


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
