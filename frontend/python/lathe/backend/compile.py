"""A functional graph compiled: as a whole where Lathe takes it, in pieces where it does not."""

import json
import operator
import re
import time
from collections import Counter

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from lathe._encoding import encode, encoding_of
from lathe._graph_json import Unwritable, write
from lathe._handle import LatheError
from lathe._load import Model
from lathe._memory import Graph, RefusedCalls
from lathe.backend.decompose import Decompositions
from lathe.backend.dense_tensors import in_rows, inverse, order_of, permuted
from lathe.backend.eager_views import give_views
from lathe.backend.left_to_eager import calls_elsewhere, calls_left_to_eager
from lathe.backend.outputs import Outputs
from lathe.backend.pieces import (
    Piece, cut, is_number, is_symbolic, is_tensor_call, number_calls, put_checks_last,
)
from lathe.backend.recording import Recording, unrecordable
from lathe.backend.report import Segment
from lathe.backend.scalars import inline_scalars, move_scalars
from lathe.backend.settled import settled_calls
from lathe.backend.strides import settle_strides
from lathe.backend.weights import MAX_REPACKS, Watch

# Such a call is wrong, or Lathe knows less than PyTorch, whose decompositions may ask nothing.
EAGER_JUDGES = ("shape-mismatch", "dtype-mismatch")
FRAME = re.compile(r'File "(.*)", line (\d+), in .*\n\s*(.*)')


def compile_graph(gm, example_inputs, weights, options, report):
    """What runs the graph on a list of its arguments. `weights` are those to pack, by position."""
    compiled = Compiled(gm, example_inputs, weights, options, report)
    call = compiled.direct() or compiled
    call._boxed_call = True  # PyTorch's word for: takes one list
    return call


class Compiled:
    """A graph that is called with a list of arguments; any thread may."""

    def __init__(self, gm, example_inputs, weights, options, report):
        self.options, self.report = options, report
        self.constants = lift_constants(gm)
        put_checks_last(gm.graph)
        self.outputs = Outputs(gm.graph)
        self.gm, self.graph = gm, gm.graph
        tensors = [a for a in example_inputs if isinstance(a, torch.Tensor)]
        self.device = device = device_of(tensors or made_tensors(self.graph))
        self.target = device.type
        move_scalars(self.graph, self.constants, device)
        inline_scalars(self.graph, self.constants, device)
        gm.recompile()
        self.placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        # Reasons by name of a call.
        self.refused = calls_left_to_eager(self.graph, device) | settle_strides(self.graph)
        self.views = set()  # names of those that calls in eager read
        self.is_recorded = False  # with eager's calls, in one CUDA graph
        self.unrecorded = None  # why it is not, when a GPU refused
        self.decompositions = Decompositions(
            [n for n in self.placeholders if isinstance(n.meta.get("val"), torch.SymInt)],
            options.of_library(self.target),
            lambda graph: calls_elsewhere(graph, device),
        )
        self.returns_sizes = not number_calls(self.graph, ()).keys().isdisjoint(
            n for n in self.returned() if isinstance(n, torch.fx.Node))
        self.build(weights)

    def __call__(self, args):
        if self.watch is not None:
            reason = self.watch.change(args)
            if reason is not None:
                self.repack(args, reason)
        if self.constants:
            args = [*args, *self.constants.values()]
        return self.outputs.finish(args, self.run(args))

    def direct(self):
        """The call without what this graph has no use for; None where it has: each Python frame
        costs as much as a small kernel.
        """
        if self.watch or self.constants or self.is_cut or self.outputs.steps is not None:
            return None
        (whole,) = self.compiled.values()
        if not isinstance(whole, LatheCall) or not whole.takes_all or whole.numbers:
            return None
        model = whole.model
        return lambda args: model(*args)

    def repack(self, args, reason):
        """Compiles for the weights that a call brings."""
        self.report.repacks.append(reason)
        weights = {i: args[i] for i, *_ in self.watch.weights}
        if len(self.report.repacks) > MAX_REPACKS:
            self.report.repacks[-1] += "; from now on they are inputs, and not packed"
            weights = {}
        self.build(weights)

    def run_unrecorded(self, reason):
        """What runs the graph, now that a GPU refused to record it."""
        self.unrecorded = reason
        self.build(self.weights)
        return self.run

    def build(self, weights):
        start = time.perf_counter()
        self.weights = weights  # by position
        placed = [(self.placeholders[i], tensor) for i, tensor in weights.items()]
        names = {node.name: tensor for node, tensor in placed if not is_symbolic(node)}
        self.packed = names | self.constants
        seconds = self.options.compile_seconds
        self.deadline = None if seconds is None else start + seconds
        self.compiled = {}  # pieces by their names
        pieces = self.pieces()
        is_watched = weights and self.options.weights == "checked"
        self.run = self.runner(pieces)
        if self.is_recorded:
            fixed = {k for k, n in enumerate(self.placeholders) if n.name in self.packed}
            self.run = Recording(self.run, fixed, self.report, self.run_unrecorded)
        self.watch = Watch(weights) if is_watched else None
        calls = [self.compiled[piece.names] for piece in pieces if not piece.is_settled]
        self.report.segments = [call.segment for call in calls]
        self.report.run_by([call.model for call in calls if isinstance(call, LatheCall)])
        self.report.fallbacks = []
        for node in self.graph.nodes:
            if node.name in self.refused and node not in self.settled:
                self.report.fall_back(str(node.target), self.refused[node.name], line_of(node))
        self.report.settled = Counter(str(node.target) for node in self.settled
                                      if node.name in self.refused)
        self.report.decomposed = self.decompositions.counts
        self.report.graph_skip = self.graph_skip() if self.options.asks_for_graph else None
        self.report.compile_ms = (time.perf_counter() - start) * 1e3

    def graph_skip(self):
        """Why a run is more than one CUDA graph; None when it is one."""
        if self.target == "cpu":
            return "its tensors are on the CPU"
        if self.is_recorded or not self.in_eager():
            return None
        return self.why_unrecorded()

    def in_eager(self):
        """The calls that eager runs in each run."""
        return [n for n in self.graph.nodes if n.name in self.refused and n not in self.settled]

    def why_unrecorded(self):
        """Why eager's calls are not recorded with Lathe's pieces; None when they may be."""
        if self.target == "cpu" or self.options.mode != "reduce-overhead":
            return f"'{self.in_eager()[0].target}' runs in eager"
        given = [n for n in self.placeholders if n.name not in self.packed]
        return self.unrecorded or unrecordable(self.graph, self.in_eager(), given, self.device)

    def pieces(self):
        """All of them compiled; each round may find more calls that Lathe refuses."""
        while True:
            give_views(self.graph, self.refused, self.views)
            in_eager = self.refused.keys() | self.views
            self.settled = dict.fromkeys(settled_calls(self.graph, in_eager, self.packed))
            is_recorded = bool(self.in_eager()) and self.why_unrecorded() is None
            if is_recorded != self.is_recorded:
                self.is_recorded, self.compiled = is_recorded, {}
            pieces = cut(self.graph, in_eager, self.settled) if self.is_cut else [self.whole()]
            if all(self.compile(piece) for piece in pieces if piece.names not in self.compiled):
                return pieces

    @property
    def is_cut(self):
        """Whether a part of it is eager's: a call, or numbers that it returns."""
        return bool(self.refused) or self.returns_sizes

    def whole(self):
        calls = [n for n in self.graph.nodes if n.op == "call_function"]
        runs_in = "lathe" if any(map(is_tensor_call, calls)) else "eager"
        return Piece(runs_in, calls, self.placeholders, list(self.returned()))

    def returned(self):
        return next(n for n in reversed(self.graph.nodes) if n.op == "output").args[0]

    def compile(self, piece):
        """False when calls of the piece are refused now, or others are in their place."""
        start = time.perf_counter()
        # The whole graph may return constants too.
        module = piece.module() if self.is_cut else self.gm
        if piece.runs_in == "eager":
            call = EagerCall(module)
        else:
            call = self.compile_in_lathe(piece, module)
            if call is None:
                return False
        elapsed = (time.perf_counter() - start) * 1e3
        calls = sum(map(is_tensor_call, piece.nodes))
        sizes = [sum(map(num_bytes, nodes)) for nodes in (piece.inputs, piece.outputs)]
        call.segment = Segment(piece.runs_in, calls, call.kernels, elapsed, *sizes, call.cache)
        self.compiled[piece.names] = call
        return True

    def compile_in_lathe(self, piece, module):
        """None when the piece has calls that Lathe refuses: what PyTorch decomposes them to is in
        their place then, or they are among `refused`.
        """
        if self.deadline is not None and time.perf_counter() > self.deadline:
            return self.refuse(piece, f"compile_seconds={self.options.compile_seconds} are over")
        try:
            return LatheCall(piece, module, self)
        except RefusedCalls as error:
            nodes = {node.name: node for node in piece.nodes}
            blamed = [call for call in error.calls if call["node"] in nodes]
            for call in blamed:
                self.avoid(nodes[call["node"]], call["reason"], call["code"] in EAGER_JUDGES)
            return None if blamed else self.refuse(piece, first_line(error))
        except Unwritable as error:
            if error.node is not None and error.node.op == "call_function":
                return self.avoid(error.node, str(error))
            return self.refuse(piece, str(error))
        except (LatheError, MemoryError) as error:
            check_options(self.options.of_library(self.target))  # are they to blame?
            return self.refuse(piece, first_line(error))

    def avoid(self, node, reason, is_eagers=False):
        """Puts others in the place of a call that Lathe refuses, or leaves it to eager."""
        name = node.name
        of_graph = next((n for n in self.graph.nodes if n.name == name), None)  # of no copy of it
        if of_graph is None or is_eagers or not self.decompositions.replace(of_graph):
            self.refused[name] = reason
        else:
            self.gm.recompile()

    def refuse(self, piece, reason):
        """Every call of the piece, when no single one is to blame."""
        calls = [n for n in piece.nodes if is_tensor_call(n)] or piece.nodes
        self.refused.update((n.name, reason) for n in calls)

    # ---- runs -----------------------------------------------------------------------------------

    def runner(self, pieces):
        """args -> what the graph returns."""
        if not self.is_cut:
            return self.compiled[pieces[0].names].of_args
        slots = {node: i for i, node in enumerate(self.placeholders)}
        for piece in pieces:
            for node in piece.outputs:
                slots[node] = len(slots)
        steps = [
            (
                self.compiled[piece.names],
                [slots[node] for node in piece.inputs],
                [slots[node] for node in piece.outputs],
            )
            for piece in pieces
        ]
        first = steps.pop(0) if pieces[0].is_settled else None
        returned = [
            (slots[value], None) if isinstance(value, torch.fx.Node) else (None, value)
            for value in self.returned()
        ]
        last_use = {slot: k for k, (_, inputs, _) in enumerate(steps) for slot in inputs}
        kept = {slot for slot, _ in returned} | set(range(len(self.placeholders)))
        dead = [
            [slot for slot in set(inputs) if slot not in kept and last_use[slot] == k]
            for k, (_, inputs, _) in enumerate(steps)
        ]
        num_made = len(slots) - len(self.placeholders)
        settled = None if first else {}  # by slot

        def run(args):
            nonlocal settled
            values = [*args, *[None] * num_made]
            if settled is None:
                call, inputs, outputs = first
                results = call.of_values([values[slot] for slot in inputs], args)
                if self.target == "cuda":
                    torch.cuda.synchronize()  # later runs may be in other streams
                settled = dict(zip(outputs, results))
            for slot, value in settled.items():
                values[slot] = value
            for (call, inputs, outputs), ends in zip(steps, dead):
                results = call.of_values([values[slot] for slot in inputs], args)
                for slot, value in zip(outputs, results):
                    values[slot] = value
                for slot in ends:
                    values[slot] = None
            return [value if slot is None else values[slot] for slot, value in returned]

        return run


class EagerCall:
    """A piece that PyTorch runs."""

    kernels = cache = None

    def __init__(self, module):
        self.forward = module.forward

    def of_values(self, values, args):
        return self.forward(*values)

    def of_args(self, args):
        return self.forward(*args)


class LatheCall:
    """A piece that Lathe runs: a model of the library."""

    def __init__(self, piece, module, compiled):
        known = compiled.packed
        packed = {n.name: known[n.name] for n in piece.inputs if n.name in known}
        tensors = [n.name for n in piece.inputs if isinstance(n.meta["val"], torch.Tensor)]
        self.where = ()
        if len(packed) == len(tensors):  # one that goes in says where what comes out shall be
            if packed:
                packed.popitem()
            else:
                module, self.where = with_device(module, compiled.device)
        orders = {n.name: order_of(n.meta["val"]) for n in piece.inputs if n.name not in packed}
        orders |= {name: order_of(tensor) for name, tensor in packed.items()}
        orders = {name: order for name, order in orders.items() if order}
        returned = [order_of(getattr(n, "meta", {}).get("val")) for n in piece.outputs]
        module = in_rows(module, orders, returned)
        packed = {name: permuted(tensor, orders[name]) if name in orders else tensor
                  for name, tensor in packed.items()}
        program = write(module, {name: name for name in packed})
        options = compiled.options.of_library(compiled.target, {n.name for n in piece.nodes})
        if compiled.is_recorded:
            options["mode"] = "default"
        if any(map(is_symbolic, piece.inputs)):
            options["dynamic"] = True  # PyTorch has decided which sizes vary
        weights = {name: readable(tensor) for name, tensor in packed.items()}
        self.model = Model(Graph(json.dumps(program), weights), options, {})
        self.kernels = self.model.info["kernels"]
        self.cache = self.model.info["cache"] or None
        self.taken = [k for k, n in enumerate(piece.inputs) if n.name not in packed]
        given = [piece.inputs[k].name for k in self.taken]
        self.orders = [(k, orders[name]) for k, name in enumerate(given) if name in orders]
        self.back = [(k, inverse(order)) for k, order in enumerate(returned) if order]
        self.takes_all = not packed and not self.where and not self.orders and not self.back
        self.numbers = [(k, number_of(node, compiled.outputs.sizes))
                        for k, node in enumerate(piece.outputs) if is_number(node)]
        # What eager's calls behind it rely on; the whole graph's outputs are laid out at the end.
        self.layouts = None
        if compiled.refused:
            layouts = [compiled.outputs.layout_of(node) for node in piece.outputs]
            self.layouts = layouts if any(layouts) else None

    def of_args(self, args):
        return self.of_values(args, args)

    def of_values(self, values, args):
        if self.takes_all:
            results = self.model(*values)
        else:
            given = [values[k] for k in self.taken]
            for k, order in self.orders:
                given[k] = given[k].permute(order)
            results = self.model(*given, *self.where)
            if self.back:
                results = [*results]
                for k, order in self.back:
                    results[k] = results[k].permute(order)
        if self.numbers:
            results = [*results]
            for k, number in self.numbers:
                results[k] = number(results[k], args)
        if self.layouts is None:
            return results
        return [
            value if layout is None else layout(value, args)
            for value, layout in zip(results, self.layouts)
        ]


def number_of(node, sizes):
    """(what Lathe gives for it, args) -> the number that eager gives: one of the arguments' sizes,
    or an element.
    """
    value = node.meta["val"]
    if isinstance(value, torch.SymInt) and sizes.places.keys() >= value.node.expr.free_symbols:
        size = sizes.function((value,))
        return lambda given, args: size(args)[0]
    return lambda given, args: given.item() if isinstance(given, torch.Tensor) else given


def with_device(module, device):
    """A copy that takes a tensor more, of nothing, and that tensor."""
    graph = torch.fx.Graph()
    returned = graph.graph_copy(module.graph, values := {})
    with unset_fake_temporarily():
        where = torch.empty(0, device=device)
    last = [values[n] for n in module.graph.nodes if n.op == "placeholder"][-1:]
    with graph.inserting_after(*last) if last else graph.inserting_before():
        graph.placeholder("where").meta["val"] = where
    graph.output(returned)
    return torch.fx.GraphModule(module, graph), (where,)


def lift_constants(gm):
    """Tensors that the graph holds, by name: from now on arguments behind the caller's."""
    constants = {}
    last = [n for n in gm.graph.nodes if n.op == "placeholder"][-1:]
    for node in [n for n in gm.graph.nodes if n.op == "get_attr"]:
        tensor = operator.attrgetter(node.target)(gm)
        if not isinstance(tensor, torch.Tensor):
            continue  # the graph of a call that carries one
        with gm.graph.inserting_after(*last) if last else gm.graph.inserting_before():
            lifted = gm.graph.placeholder(node.name)
        lifted.meta = {"val": tensor, **node.meta}
        node.replace_all_uses_with(lifted)
        gm.graph.erase_node(node)
        constants[lifted.name] = tensor
        last = [lifted]
    return constants


def made_tensors(graph):
    """What the calls of a graph that takes no tensor make."""
    values = torch.utils._pytree.tree_leaves(
        [n.meta.get("val") for n in filter(is_tensor_call, graph.nodes)])
    return [v for v in values if isinstance(v, torch.Tensor)]


def device_of(tensors):
    return next((t.device for t in tensors if t.is_cuda), torch.device("cpu"))


def readable(tensor):
    """The tensor itself, or a view or copy as the library takes it: PyTorch compiles in a mode that
    allows no op on true ones.
    """
    if tensor.is_cpu and encoding_of(tensor) is None:
        return tensor
    with unset_fake_temporarily():
        encoded = encode(tensor.detach())  # keeps its memory, whatever becomes of the parameter
        if not encoded.is_cuda or not encoded.is_contiguous() or encoded.is_neg():
            return encoded.contiguous().cpu()  # a GPU puts rows in order sooner
        torch.cuda.current_stream(encoded.device).synchronize()  # the library has another
        return encoded


def check_options(options):
    """Raises what the library says of them when they do not suit even the smallest graph."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(1, device="meta")
    call = graph.call_function(torch.ops.aten.relu.default, (x,))
    call.meta["val"] = x.meta["val"]
    graph.output((call,))
    Model(Graph(json.dumps(write(torch.fx.GraphModule({}, graph))), {}), options, {})


def first_line(error):
    return str(error).split("\n", 1)[0]


def line_of(node):
    """ "model.py:12: x = f(x)", the innermost line of the user's that the call came from."""
    frames = FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return None
    file, line, code = frames[-1]
    return f"{file.rsplit('/', 1)[-1]}:{line}: {code}"


def num_bytes(node):
    """Of a tensor, at the sizes that are there now."""
    value = getattr(node, "meta", {}).get("val")
    if not isinstance(value, torch.Tensor):
        return 0
    count = value.element_size()
    for size in value.shape:
        count *= size if isinstance(size, int) else size.node.hint or 0
    return count
