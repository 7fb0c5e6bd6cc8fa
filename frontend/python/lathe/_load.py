"""lathe.load: a compiled model that is called like the module it was exported from.

NumPy arrays and PyTorch tensors are passed by address, never copied when they are contiguous.
PyTorch is not needed, and not imported unless the caller has imported it.
"""

import sys

import numpy as np

from lathe import _extension
from lathe import _pytree as pytree
from lathe._encoding import decode, encode
from lathe._compiled import Compiled, File, address, linear
from lathe._handle import Caller, LatheError
from lathe._plan import plan



MAX_OFFERED = 16  # plans that the extension keeps


def load(path, *, dims=None, **options):
    """Loads and compiles a .pt2, a model JSON (.gz) or .lathe text; returns a Model to call.

    dims: sizes of symbolic dims to compile for first. dynamic: PyTorch's word for calls with other
    sizes: True for one program that serves every size; False for one program for each; None for a
    program of the first sizes, and one for every size of what changed since. mark_dynamic: names of
    dims that every program serves all sizes of. specialize_on: sizes that get a program of their
    own when they come, such as "s0 == 8; s1 % 4 == 0". recompile_limit: how many programs are kept.
    The model's `artifacts` says which there are and why. The other options are the library's, and
    None is as good as not given:

    target: "cpu" unless given, "cuda" or "wasm". isa: the best of this machine. threads: every
    core. weights: "file", or "random:SEED". passes: pipeline text. numerics: "default"; "ieee" for
    convolutions in f32 on target "cuda" without TF32, which they may use as PyTorch's do; "strict"
    for the same bits on targets "cpu" and "wasm" ("cuda" has none). mode: "default";
    "reduce-overhead" for one CUDA graph on target "cuda", whose calls take CUDA tensors too and do
    not wait for the GPU then; "max-autotune" to choose kernels by measuring them, once for each
    model, size and machine. cache: True to keep compiled programs for processes to come, and to
    find them; the model's info["cache"] says what was found.
    """
    given = {key: value for key, value in options.items() if value is not None}
    return Model(File(path), given, dict(dims or {}))


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


class Model(Caller):
    """A compiled model. Call it with the arguments that forward takes, in any thread."""

    def __init__(self, source, options, dims):
        self.options = options
        self.compiled = Compiled(source, options, dims)
        self.info = self.compiled.info
        self.target = self.info["target"]
        self.signature = self.info["signature"]
        self.in_spec = self.out_spec = None
        self.plain_count = -1  # of arguments, where they are the leaves
        if self.signature is None:
            leaves = [{"tensor": i} for i in range(len(self.info["inputs"]))]
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
        self.offered = ()  # sizes that the extension has a plan for, the latest last
        self.offer(self.compiled.first)
        if self.is_offered:
            self.planned = self.compiled.handle

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
        results = self.signature["outputs"] if self.signature else []
        self.coded_leaves = {k: x["encoding"] for k, x in enumerate(leaves) if "encoding" in x}
        self.coded_outputs = {x["tensor"]: x["encoding"] for x in results if "encoding" in x}
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
        is_plain = is_plain and not self.coded_leaves and not self.coded_outputs
        is_plain = is_plain and not self.compiled.run_sizes
        self.is_offered = _extension.module is not None and is_flat and is_plain

    @property
    def last_run_ms(self):
        """Milliseconds of the last call inside the library."""
        return self.compiled.handle.last_run_ms

    @property
    def artifacts(self):
        """The programs that there are, by number: for which sizes (None: every one), why, and how
        many sizes were bound to each.
        """
        return self.compiled.artifacts()

    @property
    def kernels(self):
        """The launches of a call of the last sizes, in order: "label", "kind" (as option force
        names it), "ops" (modules or calls that it is made of), "line" of Python, "flops", "bytes"
        (the least that it may move), "predicted_ms", "limit_ms", and "ms", the least of the calls
        since set_timing. What is not known is None.
        """
        return self.compiled.kernels()

    def set_timing(self, on):
        """Whether later calls measure each launch, which makes them a little slower."""
        self.compiled.set_timing(on)

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
        at = self.compiled.at(self.sizes_of(tensors, leaves))
        if self.compiled.run_sizes:
            outputs, results = self.compiled.run_sized(at, tensors)
        else:
            outputs, results = self.compiled.run(at, tensors), at.results
        self.offer(at)
        for k, i in self.mutated:
            # The model changed a copy where the caller's memory was not contiguous.
            if leaves[k] is not tensors[i] and address(leaves[k]) != address(tensors[i]):
                new = tensors[i]
                leaves[k][...] = decode(new, self.coded_leaves.get(k))
        for i, encoding in self.coded_outputs.items():
            outputs[i] = decode(outputs[i], encoding)
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
        if self.coded_leaves:
            leaves = list(leaves)
            for k, encoding in self.coded_leaves.items():
                leaves[k] = encode(leaves[k], encoding, self.leaves[k].get("name"))
        return [contiguous(leaves[k], name, self.target) for k, name in self.input_leaves]

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

    def offer(self, at):
        """Lets the extension make calls of flat arguments at these sizes itself."""
        if not self.is_offered or at.sizes in self.offered:
            return
        self.offered = (*self.offered[-MAX_OFFERED + 1 :], at.sizes)
        dims = dict(zip(self.info["dims"], at.sizes))
        plan(self.compiled, at, [self.expected(leaf, dims) for leaf in self.leaves], self.out_spec)

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
