"""lathe.load: a compiled model that is called like the module it was exported from.

NumPy arrays and PyTorch tensors are passed by address, never copied when they are contiguous.
PyTorch is not needed, and not imported unless the caller has imported it.
"""

import ctypes
import functools
import json
import re
import sys

import numpy as np

from lathe import _pytree as pytree
from lathe._library import NUMPY_DTYPES, OUT_OF_MEMORY, TORCH_DTYPES, library

MAX_SIZES = 8  # compiled sizes of a dynamic model that are kept
LINEAR_DIM = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?")


class LatheError(RuntimeError):
    """What Lathe says of a wrong model, option or argument."""


def load(path, *, dims=None, **options):
    """Loads and compiles a .pt2, a model JSON (.gz) or .lathe text; returns a Model to call.

    dims: sizes of symbolic dims to compile for first; a call with other sizes compiles for them
    once. The other options are the library's, and None is as good as not given:

    target: "cpu" unless given, "cuda" or "wasm". isa: the best of this machine. threads: every
    core. weights: "file", or "random:SEED". passes: pipeline text. numerics: "default", or "strict"
    for the same bits on targets "cpu" and "wasm" ("cuda" has none). mode: "default", or
    "reduce-overhead" for one CUDA graph on target "cuda", whose calls take CUDA tensors too and do
    not wait for the GPU then.
    """
    given = {key: value for key, value in options.items() if value is not None}
    return Model(str(path), given, dict(dims or {}))


class Compiled:
    """One handle of the library: a model at fixed sizes."""

    def __init__(self, path, options, dims):
        self.handle = None
        self.library = library()
        text = json.dumps({**options, "dims": dims}).encode()
        self.handle = self.library.lathe_load(path.encode(), text)
        if not self.handle:
            raise MemoryError("out of memory")
        self.raise_error()
        self.info = json.loads(self.library.lathe_info(self.handle))
        self.inputs = self.tensors("input")
        self.outputs = self.tensors("output")
        self.input_pointers = (ctypes.c_void_p * max(len(self.inputs), 1))()
        self.output_pointers = (ctypes.c_void_p * max(len(self.outputs), 1))()

    def __del__(self):
        if self.handle:
            self.library.lathe_free(self.handle)

    def tensors(self, side):
        """(name, number of the dtype, shape) of every input or output."""
        count = getattr(self.library, f"lathe_num_{side}s")(self.handle)
        info_at = getattr(self.library, f"lathe_{side}")
        infos = [info_at(self.handle, i).contents for i in range(count)]
        return [(t.name.decode(), t.dtype, tuple(t.shape[: t.rank])) for t in infos]

    def raise_error(self):
        error = self.library.lathe_error(self.handle)
        if error is None:
            return
        if self.library.lathe_last_status(self.handle) == OUT_OF_MEMORY:
            raise MemoryError(error.decode().rstrip("\n"))
        raise LatheError(error.decode().rstrip("\n"))

    def run(self, inputs, torch):
        """Runs on checked tensors; returns new outputs of the same kind as the inputs."""
        outputs = []
        device = self.device_of(inputs, torch)
        for i, (name, dtype, shape) in enumerate(self.inputs):
            self.input_pointers[i] = address(check_tensor(inputs[i], i, name, dtype, shape, torch))
        for i, (_, dtype, shape) in enumerate(self.outputs):
            dtype = dtype_object(dtype, torch)
            if torch is not None:
                outputs.append(torch.empty(shape, dtype=dtype, device=device))
            else:
                outputs.append(np.empty(shape, dtype=dtype))
            self.output_pointers[i] = address(outputs[-1])
        if self.library.lathe_run(self.handle, self.input_pointers, self.output_pointers) != 0:
            self.raise_error()
        return outputs

    def device_of(self, inputs, torch):
        """Where inputs and outputs are; the GPU's are worked on in PyTorch's current stream."""
        if self.info["target"] != "cuda" or torch is None or not inputs:
            return None
        device = getattr(inputs[0], "device", None)
        stream = None
        if device is not None and device.type == "cuda":
            # The default stream's handle is 0, but its name among CUDA's streams is 1.
            stream = torch.cuda.current_stream(device).cuda_stream or 1
        self.library.lathe_set_stream(self.handle, stream)
        return device


def address(tensor):
    return tensor.ctypes.data if isinstance(tensor, np.ndarray) else tensor.data_ptr()


@functools.cache
def dtype_object(number, module):
    """NumPy's dtype, or torch's where that is the module."""
    if module is None:
        return np.dtype(NUMPY_DTYPES[number])
    return getattr(module, TORCH_DTYPES[number])


def check_tensor(tensor, index, name, dtype, shape, torch):
    """The tensor when it fits."""
    is_torch = torch is not None and isinstance(tensor, torch.Tensor)
    if tensor.dtype == dtype_object(dtype, torch if is_torch else None) and tensor.shape == shape:
        return tensor
    expected = (TORCH_DTYPES if is_torch else NUMPY_DTYPES)[dtype]
    found = str(tensor.dtype).replace("torch.", "")
    raise LatheError(
        f"input {index} ('{name}') is {expected}{list(shape)}, got {found}{list(tensor.shape)}"
    )


def contiguous(value, torch, target):
    """A tensor whose memory can be read row by row; copies only what is not so already."""
    if torch is not None and isinstance(value, torch.Tensor):
        if value.device.type not in ("cpu", target):
            raise LatheError(f"a tensor is on '{value.device}', expected the CPU")
        return value if value.is_contiguous() else value.detach().contiguous()
    array = np.asarray(value)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


class Model:
    """A compiled model. Call it with the arguments that forward takes."""

    def __init__(self, path, options, dims):
        self.path, self.options = path, options
        first = Compiled(path, options, dims)
        self.info = first.info
        self.compiled = {self.key(first.info["dims"]): first}
        self.current = first
        signature = first.info["signature"]
        self.in_spec = self.out_spec = None
        if signature is not None:
            self.in_spec = pytree.parse_spec(signature["in_spec"])
            self.out_spec = pytree.parse_spec(signature["out_spec"])
        self.signature = signature
        names = [info["name"] for info in first.info["inputs"]]
        self.mutated = [i for i, name in enumerate(names) if name in first.info["mutations"]]

    @staticmethod
    def key(dims):
        return tuple(sorted(dims.items()))

    @property
    def last_run_ms(self):
        """Milliseconds of the last call inside the library."""
        return self.current.library.lathe_last_run_ms(self.current.handle)

    def __call__(self, *args, **kwargs):
        torch = sys.modules.get("torch")
        leaves = self.flatten(args, kwargs)
        given = self.input_tensors(leaves)
        tensors = [contiguous(value, torch, self.info["target"]) for value in given]
        uses_torch = torch is not None and any(isinstance(t, torch.Tensor) for t in tensors)
        self.current = self.compiled_for(tensors, leaves)
        outputs = self.current.run(tensors, torch if uses_torch else None)
        for i in self.mutated:
            # The model changed a copy where the caller's memory was not contiguous.
            if address(given[i]) != address(tensors[i]):
                given[i][...] = tensors[i]
        return self.unflatten(outputs)

    def flatten(self, args, kwargs):
        if self.in_spec is None:
            if kwargs:
                raise LatheError("this model takes positional arguments only")
            return list(args)
        try:
            return pytree.flatten(self.bind(args, kwargs), self.in_spec)
        except pytree.TreeError as error:
            raise LatheError(str(error)) from None

    def bind(self, args, kwargs):
        """(args, kwargs) as exported, whichever way the caller wrote an argument."""
        positional, keywords = pytree.children(self.in_spec)
        count, keys = len(pytree.children(positional)), pytree.dict_keys(keywords)
        if len(args) == count and set(kwargs) == set(keys):
            return args, kwargs
        names = self.signature["arg_names"]
        if len(names) != count + len(keys) or len(args) > len(names):
            return args, kwargs
        values = dict(zip(names, args), **kwargs)
        if set(values) != set(names) or len(values) != len(args) + len(kwargs):
            return args, kwargs
        return tuple(values[n] for n in names[:count]), {k: values[k] for k in keys}

    def input_tensors(self, leaves):
        """The leaves that are tensors, in the order of the graph's inputs; others are checked."""
        if self.signature is None:
            if len(leaves) != len(self.info["inputs"]):
                raise LatheError(f"expected {len(self.info['inputs'])} tensors, got {len(leaves)}")
            return leaves
        tensors = [None] * len(self.info["inputs"])
        for leaf, value in zip(self.signature["inputs"], leaves):
            if "tensor" in leaf:
                if not hasattr(value, "shape"):
                    raise LatheError(f"'{leaf['name']}' is a tensor, got {type(value).__name__}")
                tensors[leaf["tensor"]] = value
            elif "constant" in leaf and value != leaf["constant"]:
                raise LatheError(
                    f"'{leaf['name']}' was exported as {leaf['constant']!r}, got {value!r}"
                )
        return tensors

    def compiled_for(self, tensors, leaves):
        """The handle for these sizes, compiled when they are new."""
        if not self.info["dims"]:
            return self.current
        dims = dict(self.info["dims"])
        for tensor, info in zip(tensors, self.info["inputs"]):
            for size, dim in zip(tensor.shape, info["shape"]):
                bind_dim(dims, dim, int(size))
        if self.signature is not None:
            for leaf, value in zip(self.signature["inputs"], leaves):
                if "size" in leaf:
                    bind_dim(dims, leaf["size"], int(value))
        key = self.key(dims)
        if key not in self.compiled:
            if len(self.compiled) == MAX_SIZES:
                del self.compiled[next(iter(self.compiled))]
            self.compiled[key] = Compiled(self.path, self.options, dims)
        return self.compiled[key]

    def unflatten(self, outputs):
        if self.signature is None:
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        leaves = []
        for leaf in self.current.info["signature"]["outputs"]:
            if "tensor" in leaf:
                leaves.append(outputs[leaf["tensor"]])
            else:
                leaves.append(leaf["value"] if "size" in leaf else leaf["constant"])
        return pytree.unflatten(iter(leaves), self.out_spec)


def bind_dim(dims, dim, size):
    """Solves s0, 2*s0 and 2*s0 + 1 for their symbol; the library checks every other size."""
    match = LINEAR_DIM.fullmatch(dim) if isinstance(dim, str) else None
    if match is None or match[2] not in dims:
        return
    factor = int(match[1] or 1)
    offset = int(match[4] or 0) * (-1 if match[3] == "-" else 1)
    dims[match[2]] = (size - offset) // factor
