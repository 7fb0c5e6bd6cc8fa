"""lathe.load: a compiled model that is called like the module it was exported from.

NumPy arrays and PyTorch tensors are passed by address, never copied when they are contiguous.
PyTorch is not needed, and not imported unless the caller has imported it.
"""

import re
import sys
import threading
import typing

import numpy as np

from lathe import _extension
from lathe import _pytree as pytree
from lathe._compiled import Compiled, address
from lathe._handle import Caller, LatheError
from lathe._plan import plan

MAX_SIZES = 8  # compiled sizes of a dynamic model that are kept
LINEAR_DIM = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?")


def load(path, *, dims=None, **options):
    """Loads and compiles a .pt2, a model JSON (.gz) or .lathe text; returns a Model to call.

    dims: sizes of symbolic dims to compile for first; a call with other sizes compiles for them
    once. dynamic: True for one program that serves every size, on target "cpu" or "wasm". The other
    options are the library's, and None is as good as not given:

    target: "cpu" unless given, "cuda" or "wasm". isa: the best of this machine. threads: every
    core. weights: "file", or "random:SEED". passes: pipeline text. numerics: "default", or "strict"
    for the same bits on targets "cpu" and "wasm" ("cuda" has none). mode: "default";
    "reduce-overhead" for one CUDA graph on target "cuda", whose calls take CUDA tensors too and do
    not wait for the GPU then; "max-autotune" to choose kernels by measuring them, once for each
    model, size and machine.
    """
    given = {key: value for key, value in options.items() if value is not None}
    return Model(str(path), given, dict(dims or {}))


def contiguous(value, name, target):
    """A tensor whose memory can be read row by row; copies only what is not so already."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if not value.is_cpu and value.device.type != target:
            raise LatheError(f"a tensor is on '{value.device}', expected the CPU")
        if value.is_contiguous() and not value.is_neg():
            return value
        return value.detach().resolve_neg().contiguous()
    if name is not None and not hasattr(value, "shape"):
        raise LatheError(f"'{name}' is a tensor, got {type(value).__name__}")
    array = np.asarray(value)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


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


class Model(Caller):
    """A compiled model. Call it with the arguments that forward takes, in any thread."""

    def __init__(self, path, options, dims):
        self.path, self.options = path, options
        first = Compiled(path, options, dims)
        self.info = first.info
        self.compiled = {tuple(first.info["dims"].values()): first}
        self.compiling = threading.Lock()
        self.is_dynamic = bool(options.get("dynamic")) and bool(first.info["dims"])
        self.target = first.info["target"]
        self.signature = first.info["signature"]
        self.in_spec = self.out_spec = None
        self.plain_count = -1  # of arguments, where they are the leaves
        if self.signature is None:
            leaves = [{"tensor": i} for i in range(len(first.inputs))]
        else:
            leaves = self.signature["inputs"]
            self.in_spec = pytree.parse_spec(self.signature["in_spec"])
            self.out_spec = pytree.parse_spec(self.signature["out_spec"])
            self.arg_names = self.signature["arg_names"]
            self.arg_name_set = set(self.arg_names)
            positional, keywords = self.in_spec.children
            if positional.is_flat and not keywords.children:
                self.plain_count = len(leaves)
        self.read_leaves(leaves)
        self.last = first.handle
        self.offer()

    def read_leaves(self, leaves):
        """What a call does with each of its leaves."""
        self.leaves = leaves
        inputs, dims = self.info["inputs"], self.info["dims"]
        numbered = sorted((leaf["tensor"], k) for k, leaf in enumerate(leaves) if "tensor" in leaf)
        self.input_leaves = [(k, leaves[k].get("name")) for _, k in numbered]
        self.mutated = [(k, i) for i, k in numbered if inputs[i]["name"] in self.info["mutations"]]
        self.constants = [
            (k, leaf["name"], leaf["constant"])
            for k, leaf in enumerate(leaves)
            if "constant" in leaf
        ]
        # What symbolic dims are read from; the library checks every other size.
        axes = [
            (i, axis, linear(size))
            for i, tensor in enumerate(inputs)
            for axis, size in enumerate(tensor["shape"])
        ]
        sizes = [(k, linear(leaf.get("size"))) for k, leaf in enumerate(leaves)]
        self.sized_axes = [item for item in axes if item[-1].symbol in dims]
        self.sized_leaves = [item for item in sizes if item[-1].symbol in dims]
        is_flat = self.in_spec is None or self.plain_count >= 0
        is_plain = all("size" not in leaves[k] or dim.symbol in dims for k, dim in sizes)
        # The extension calls programs of fixed sizes.
        self.is_offered = (
            _extension.module is not None and is_flat and is_plain and not self.is_dynamic
        )

    @property
    def last_run_ms(self):
        """Milliseconds of the last call inside the library."""
        return self.last.last_run_ms

    def call(self, *args, **kwargs):
        """What a call does, whatever the arguments: the extension has a short way for some."""
        leaves = self.flatten(args, kwargs)
        tensors = self.input_tensors(leaves)
        if self.is_offered:
            _extension.meet(tensors)
        for k, i in self.mutated:
            if isinstance(leaves[k], np.ndarray) and not leaves[k].flags.writeable:
                name = self.info["inputs"][i]["name"]
                raise LatheError(f"'{name}' is changed by the model, but cannot be written")
        outputs, results, self.last = self.run(tensors, self.sizes_of(tensors, leaves))
        for k, i in self.mutated:
            # The model changed a copy where the caller's memory was not contiguous.
            if leaves[k] is not tensors[i] and address(leaves[k]) != address(tensors[i]):
                leaves[k][...] = tensors[i]
        return unflatten(outputs, results, self.out_spec)

    def flatten(self, args, kwargs):
        if self.in_spec is None:
            if kwargs:
                raise LatheError("this model takes positional arguments only")
            if len(args) != len(self.input_leaves):
                raise LatheError(f"expected {len(self.input_leaves)} tensors, got {len(args)}")
            return args
        if len(args) == self.plain_count and not kwargs:
            return args
        try:
            return pytree.flatten(self.bind(args, kwargs), self.in_spec)
        except pytree.TreeError as error:
            raise LatheError(str(error)) from None

    def bind(self, args, kwargs):
        """(args, kwargs) as exported, whichever way the caller wrote an argument."""
        positional, keywords = self.in_spec.children
        count = len(positional.children)
        if len(args) == count and kwargs.keys() == keywords.key_set:
            return args, kwargs
        names = self.arg_names
        if len(names) != count + len(keywords.keys) or len(args) > len(names):
            return args, kwargs
        values = dict(zip(names, args), **kwargs)
        if len(values) != len(args) + len(kwargs) or values.keys() != self.arg_name_set:
            return args, kwargs
        return [values[n] for n in names[:count]], {k: values[k] for k in keywords.keys}

    def input_tensors(self, leaves):
        """The graph's inputs among the leaves, contiguous; constants are checked."""
        for k, name, constant in self.constants:
            if leaves[k] != constant:
                raise LatheError(f"'{name}' was exported as {constant!r}, got {leaves[k]!r}")
        return [contiguous(leaves[k], name, self.target) for k, name in self.input_leaves]

    def run(self, tensors, dims):
        """Outputs, what the results are of them, and the handle that was run."""
        if not self.is_dynamic:
            compiled = self.compiled_for(dims)
            return compiled.run(tensors), compiled.results, compiled.handle
        (compiled,) = self.compiled.values()
        with self.compiling:
            compiled.bind(dims)
            results = [
                (i, value if size is None else linear(size).at(dims))
                for (i, value), size in zip(compiled.results, compiled.result_sizes)
            ]
            return compiled.run(tensors), results, compiled.handle

    def sizes_of(self, tensors, leaves):
        """The size of each symbol, as the arguments have it."""
        dims = dict(self.info["dims"])
        for i, axis, dim in self.sized_axes:
            shape = tensors[i].shape
            if axis < len(shape):
                dims[dim.symbol] = dim.solve(shape[axis])
        for i, dim in self.sized_leaves:
            dims[dim.symbol] = dim.solve(int(leaves[i]))
        return dims

    def compiled_for(self, dims):
        """The one for these sizes, compiled when they are new."""
        key = tuple(dims.values())
        found = self.compiled.get(key)
        if found is None:
            with self.compiling:
                found = self.compiled.get(key) or self.compile(key, dims)
        return found

    def compile(self, key, dims):
        compiled = Compiled(self.path, self.options, dims, next(iter(self.compiled.values())))
        kept = list(self.compiled.items())[-MAX_SIZES + 1 :]
        self.compiled = {**dict(kept), key: compiled}
        self.offer()
        return compiled

    def offer(self):
        """Lets the extension make calls of flat arguments itself: first for the newest sizes."""
        if not self.is_offered:
            return
        for compiled in self.compiled.values():
            if compiled.handle not in self.handles:
                leaves = [self.expected(leaf, compiled.info["dims"]) for leaf in self.leaves]
                plan(compiled, leaves, self.out_spec)
        self.handles = tuple(c.handle for c in reversed(self.compiled.values()))

    def expected(self, leaf, dims):
        """The number of an input, or None and the value of a constant."""
        if "tensor" in leaf:
            return leaf["tensor"], None
        return None, linear(leaf["size"]).at(dims) if "size" in leaf else leaf["constant"]


def unflatten(outputs, results, out_spec):
    """The result, nested as the model was exported."""
    if out_spec is None:
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
    leaves = [value if i is None else outputs[i] for i, value in results]
    return pytree.unflatten(iter(leaves), out_spec)
