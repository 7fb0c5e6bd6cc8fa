"""Every f32 and i64 sample of PyTorch's operator database, against eager PyTorch.

Each sample is traced to the graph that torch.export gives and written in its format; run_calls runs
it in the interpreter and on the CPU. What Lathe refuses with a diagnostic is counted, by reason;
whatever runs must be right. --test_env=OPINFO_OPS=PATTERN looks at some operators alone,
OPINFO_DTYPES=complex64 at other dtypes, and OPINFO_TARGET="wasm relaxed" at another target.
"""

import collections
import concurrent.futures
import json
import operator
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest
import warnings

try:
    import expecttest  # noqa: F401  the database's module imports it
    import torch
    from torch._export.serde import serialize
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.export import graph_signature as signature
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from torch.testing._internal.common_device_type import toleranceOverride
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.utils import _pytree as pytree
except ImportError as error:
    raise unittest.SkipTest(f"needs torch and expecttest: {error}") from None

sys.path.insert(0, str(pathlib.Path("frontend/python").resolve()))

from lathe.conformance.draws import Draws  # noqa: E402

RUN_CALLS = os.environ.get("RUN_CALLS", "tests/ops/run_calls")
TARGET = os.environ.get("OPINFO_TARGET", "cpu")  # and an instruction set, behind a space
DTYPES = tuple(getattr(torch, name)
               for name in os.environ.get("OPINFO_DTYPES", "float32,int64").split(","))
NAMES = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16,
         "i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16,
         "f32": torch.float32, "f64": torch.float64}
# Their elements are whatever was in memory: only types are compared.
UNINITIALIZED = re.compile(r"aten\.(new_)?empty(_like|_strided|_permuted)?\.")
# PyTorch does not say in which order these take equal elements, of more than a few.
CHOOSES_AMONG_EQUALS = tuple(getattr(torch.ops.aten, name).default
                             for name in ("argsort", "kthvalue", "mode", "sort", "topk"))
# Vectors of theirs have either sign. PyTorch's own tests compare what the samples'
# output_process_fn_grad makes of results, and so do we where results themselves differ.
HAVE_EITHER_SIGN = ("linalg.eigh", "linalg.svd", "pca_lowrank", "svd", "svd_lowrank")
RMSE_FACTOR = 3  # torch._dynamo.utils.same's, for errors against float64


class NotTraced(Exception):
    """PyTorch itself has no graph for the sample: a size or branch depends on data."""


class Crash(Exception):
    """run_calls ended, or did not answer."""


class Sample:
    """A call of an operator with tensors as inputs and all else fixed."""

    def __init__(self, op, info):
        self.op = op
        self.process = getattr(info, "output_process_fn_grad", lambda results: results)
        self.leaves, self.spec = pytree.tree_flatten((info.input, info.args, info.kwargs))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = [self.leaves[i].detach() for i in self.places]

    def __call__(self, *tensors):
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        leaves, self.result_spec = pytree.tree_flatten(self.op(first, *args, **kwargs))
        self.are_complex = [isinstance(r, torch.Tensor) and r.is_complex() for r in leaves]
        return leaves

    def without_signs(self, results):
        """What is the same whichever signs results have."""
        own = [torch.view_as_complex(r) if is_complex else r
               for r, is_complex in zip(results, self.are_complex, strict=True)]
        own = pytree.tree_unflatten(own, self.result_spec)
        return [in_reals(r) for r in pytree.tree_leaves(self.process(own))]

    def __str__(self):
        def text(leaf):
            if not isinstance(leaf, torch.Tensor):
                return repr(leaf)
            name = str(leaf.dtype).removeprefix("torch.")
            strides = "" if leaf.is_contiguous() else f" strides {leaf.stride()}"
            return f"{name}{list(leaf.shape)}{strides}"
        return str(pytree.tree_unflatten([text(leaf) for leaf in self.leaves], self.spec))

    def eager(self, dtype=None):
        """Results on copies, which are `after` then; floats in `dtype` when it is given."""
        tensors = [t.clone() if dtype is None or not (t.is_floating_point() or t.is_complex())
                   else t.to(dtype.to_complex() if t.is_complex() else dtype)
                   for t in self.tensors]
        self.after = tensors
        usual = torch.get_default_dtype()
        try:  # floats that are made of integers are of the default dtype
            torch.set_default_dtype(dtype or usual)
            with torch.no_grad():
                return self(*tensors)
        finally:
            torch.set_default_dtype(usual)

    def written(self):
        """The inputs that the last call on copies changed, as they are behind it."""
        return [after for before, after in zip(self.tensors, self.after)
                if not torch.equal(before.nan_to_num(), after.nan_to_num())]


def trace(sample):
    """The graph as torch.export traces it, with its constants as further inputs."""
    mode = FakeTensorMode(shape_env=ShapeEnv())  # sizes that elements decide are symbols of it
    try:
        with torch.no_grad():
            fakes = [mode.from_tensor(t, static_shapes=True) for t in sample.tensors]
            with mode:
                module = make_fx(sample, pre_dispatch=True)(*fakes)
    except Exception as error:  # whatever an operator raises under tracing
        raise NotTraced(type(error).__name__) from None
    tensors = list(sample.tensors)
    last = [n for n in module.graph.nodes if n.op == "placeholder"][-1:]
    for node in list(module.graph.nodes):
        if node.op != "get_attr":
            continue
        value = getattr(module, node.target)
        if not isinstance(value, torch.Tensor):
            raise NotTraced("a subgraph")
        place = (module.graph.inserting_after(last[0]) if last else
                 module.graph.inserting_before(next(iter(module.graph.nodes))))
        with place:
            last = [module.graph.placeholder(node.name + "_value")]
        last[0].meta["val"] = mode.from_tensor(value, static_shapes=True)
        tensors.append(value)
        node.replace_all_uses_with(last[0])
        module.graph.erase_node(node)
    return module, tensors


def model_json(module):
    """The graph in the format of torch.export.save."""
    def place(node):
        if not isinstance(node, torch.fx.Node):
            raise NotTraced("a result that is no tensor")
        return signature.TensorArgument(node.name)

    (results,) = next(n for n in module.graph.nodes if n.op == "output").args
    inputs = [signature.InputSpec(signature.InputKind.USER_INPUT, place(n), None)
              for n in module.graph.nodes if n.op == "placeholder"]
    outputs = [signature.OutputSpec(signature.OutputKind.USER_OUTPUT, place(n), None)
               for n in results]
    writer = serialize.GraphModuleSerializer(signature.ExportGraphSignature(inputs, outputs), [])
    try:
        graph = serialize._dataclass_to_dict(writer.serialize(module))
    except Exception as error:
        raise NotTraced(f"not written: {type(error).__name__}") from None
    version = {"major": serialize.SCHEMA_VERSION[0], "minor": serialize.SCHEMA_VERSION[1]}
    program = {"graph_module": graph, "opset_version": {"aten": 10}, "range_constraints": {},
               "schema_version": version, "verifiers": [], "torch_version": torch.__version__}
    return json.dumps(program, cls=serialize.EnumEncoder).encode()


def in_reals(tensor):
    """Complex numbers as the pairs that they are to Lathe."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def raw(tensor):
    tensor = in_reals(tensor).contiguous()
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


class Lathe:
    """The process that runs calls; a new one follows a crash."""

    def __init__(self):
        self.process = None

    def start(self):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([RUN_CALLS, *TARGET.split()], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE)

    def number(self):
        data = self.process.stdout.read(8)
        if len(data) < 8:
            raise Crash
        return struct.unpack("<q", data)[0]

    def bytes(self):
        size = self.number()
        data = self.process.stdout.read(size)
        if len(data) < size:
            raise Crash
        return data

    def tensor(self, dtype, shape, data):
        if not data:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)

    def run(self, model, tensors):
        """("ran", [interpreter's, target's results]), or what was said instead."""
        self.start()
        call = [struct.pack("<q", len(model)), model, struct.pack("<q", len(tensors))]
        for tensor in tensors:
            data = raw(tensor)
            call += [struct.pack("<q", len(data)), data]
        try:
            self.process.stdin.write(b"".join(call))
            self.process.stdin.flush()
            verdict = self.bytes().decode()
            if verdict != "ran":
                return verdict, self.bytes().decode()
            results = [], []
            for _ in range(self.number()):
                dtype = NAMES[self.bytes().decode()]
                shape = [self.number() for _ in range(self.number())]
                for to in results:
                    to.append(self.tensor(dtype, shape, self.bytes()))
            return verdict, results
        except (Crash, BrokenPipeError):
            return "crashed", f"run_calls ended with {self.process.wait()}"


def choice_among_equals(module):
    """The graph's one call, when it is such a one."""
    calls = [n for n in module.graph.nodes
             if n.op == "call_function" and n.target is not operator.getitem]
    return calls[0] if len(calls) == 1 and calls[0].target in CHOOSES_AMONG_EQUALS else None


def with_elements(node, tensors, results):
    """Results with the elements at positions in place of those."""
    place = [arg.name for arg in node.target._schema.arguments].index("dim")
    dim = node.args[place] if len(node.args) > place else node.kwargs.get("dim", -1)
    *values, at = results
    if at.dim() < tensors[0].dim():
        at = at.unsqueeze(dim)
    return [*values, tensors[0].gather(dim, at)]


def rmse(found, exact):
    error = found.to(torch.float64) - exact
    return float(torch.sqrt(torch.mean(torch.where(error.isfinite(), error, 0) ** 2)))


def same_specials(found, wanted):
    """Infinities and NaN where the other has them."""
    return torch.equal(found.nan_to_num(2, 1, -1) * ~found.isfinite(),
                       wanted.nan_to_num(2, 1, -1) * ~wanted.isfinite())


def tolerance(op, dtype):
    """assert_close's bounds: its own, or the widest that PyTorch's tests of the operator use on a
    CPU."""
    bounds = {}
    for decorator in op.decorators:
        on_cpu = getattr(decorator, "device_type", None) in (None, "cpu")
        for part in getattr(decorator, "decorators", [decorator]) if on_cpu else []:
            if isinstance(part, toleranceOverride) and dtype in part.d:
                tol = part.d[dtype]
                bounds["atol"] = max(tol.atol, bounds.get("atol", 1e-5))
                bounds["rtol"] = max(tol.rtol, bounds.get("rtol", 1.3e-6))
    return bounds


def far_from(found, wanted, bounds):
    """None, or what assert_close says of a result."""
    try:
        torch.testing.assert_close(found, wanted, equal_nan=True,
                                   **(bounds if wanted.dtype == torch.float32 else {}))
        return None
    except AssertionError as error:
        return " ".join(str(error).split())


def disagreement(found, wanted, bounds, exact):
    """None, or how a result differs: by assert_close, or else against float64 as
    torch._dynamo.utils.same does. Where eager has infinities or NaN that float64 has not, it is the
    result in float64 that is wanted."""
    words = far_from(found, wanted, bounds)
    if words is None:
        return None
    exact = exact() if found.dtype.is_floating_point and found.dtype == wanted.dtype else None
    if exact is None or exact.shape != found.shape:
        return words
    if not same_specials(wanted, exact.to(found.dtype)):
        return words if far_from(found, exact.to(found.dtype), bounds) else None
    if not same_specials(found, wanted):
        return words
    eager_error, own_error = rmse(wanted, exact), rmse(found, exact)
    return None if own_error <= RMSE_FACTOR * eager_error else words


class Checker:
    """The samples of one operator in one dtype."""

    def __init__(self, lathe):
        self.lathe = lathe

    def check(self, index, dtype):
        """(counts by verdict, reasons of refusals, failures)"""
        op = op_db[index]
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        counts, reasons, failures = collections.Counter(), collections.Counter(), []
        torch.manual_seed(0)
        bounds = tolerance(op, dtype)
        for number, info in enumerate(op.sample_inputs("cpu", dtype)):
            sample = Sample(op.op, info)
            verdict, words = self.check_sample(sample, bounds, op.name in HAVE_EITHER_SIGN)
            counts[verdict] += 1
            if verdict in ("refused", "not traced"):
                reasons[words] += 1
            elif verdict != "agrees":
                failures.append(f"{name} {dtype} sample {number} {verdict}: {sample}\n{words}")
        return name, counts, reasons, failures

    def check_sample(self, sample, bounds, has_either_sign=False):
        try:
            module, tensors = trace(sample)
            model = model_json(module)
        except NotTraced as error:
            return "not traced", str(error)
        verdict, results = self.lathe.run(model, tensors)
        if verdict == "refused":
            return verdict, refusal(results)
        if verdict != "ran":
            return verdict, f"{results}\n{module.graph}"
        try:
            torch.manual_seed(0)
            wanted = [in_reals(value) for value in sample.eager()]
        except Exception as error:
            return "not traced", f"eager raises {type(error).__name__}"
        draws = is_random(sample)
        if UNINITIALIZED.search(model.decode()) or draws:
            wanted = [torch.zeros_like(w) for w in wanted]
            results = [[torch.zeros_like(r) for r in some] for some in results]
        if any(may_write_input(node) for node in module.graph.nodes):
            written = sample.written()  # comes behind; fewer where elements stayed what they were
            if len(written) == len(results[0]) - len(wanted) and not draws:
                wanted = [*wanted, *written]
            results = [some[: len(wanted)] for some in results]
        if choice := choice_among_equals(module):
            wanted, *results = (with_elements(choice, tensors, r) for r in (wanted, *results))
        for who, found in zip(("interpreter", TARGET), results, strict=True):
            words = difference(sample, found, wanted, bounds)
            if words and has_either_sign and len(found) == len(wanted):
                words = difference(sample, *map(sample.without_signs, (found, wanted)), bounds,
                                   sample.without_signs)
            if words:
                return "wrong", f"{who}, {words}\n{module.graph}"
        return "agrees", ""


def difference(sample, found, wanted, bounds, process=list):
    """The first of results, or of what `process` makes of them, that is not the other's."""
    if len(found) != len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    for i, (f, w) in enumerate(zip(found, wanted)):
        words = disagreement(f, w, bounds, lambda i=i: exact_result(sample, i, process))
        if words:
            return f"result {i}: {words}"
    return None


# They move running statistics, which their schemas do not say.
MOVES_STATISTICS = tuple(getattr(torch.ops.aten, name).default
                         for name in ("native_batch_norm", "batch_norm", "instance_norm"))


def may_write_input(node):
    if node.target in MOVES_STATISTICS:
        return True
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def is_random(sample):
    """Where Lathe's draws are its own, only types are compared."""
    with Draws() as draws:
        sample.eager()
    return draws.found


def exact_result(sample, i, process):
    try:
        torch.manual_seed(0)
        results = [in_reals(r) for r in sample.eager(torch.float64)]
        return process(results)[i].to(torch.float64)
    except Exception:  # no float64 kernel
        return None


def refusal(text):
    """An error's code and first words, without the sample's numbers."""
    if "[unsupported-op]" in text:
        return "no op for " + ", ".join(sorted(set(re.findall(r"^\s*(aten\.\S+)", text, re.M))))
    first = re.sub(r"^\S+: ", "", text.splitlines()[0])
    return re.sub(r"\d+", "N", first)[:100]


def worker(task):
    global checker
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if "checker" not in globals():
        checker = Checker(Lathe())
    return checker.check(*task)


def tasks():
    found = [(i, dtype) for i, op in enumerate(op_db) for dtype in DTYPES
             if dtype in op.supported_dtypes("cpu")]
    chosen = os.environ.get("OPINFO_OPS")
    return [t for t in found if not chosen or re.search(chosen, op_db[t[0]].name)]


class OpInfo(unittest.TestCase):
    def test_what_runs_agrees_with_eager(self):
        counts, reasons, failures = collections.Counter(), collections.Counter(), []
        with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
            for name, some, why, failed in pool.map(worker, tasks()):
                counts += some
                reasons += why
                failures += [(name, words) for words in failed]
        print("samples:", ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
        for reason, number in reasons.most_common(40):
            print(f"{number:6} {reason}")
        for name, words in failures:
            with self.subTest(name):
                self.fail(words)
        self.assertGreater(counts["agrees"], 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
