"""Calls that Lathe has no op for, as PyTorch decomposes them, where Lathe runs all that comes out.

A call is traced alone, on its own fake arguments, and what comes out takes its place in the graph.
Where a part of that is refused too it is decomposed in turn; where one stays refused the call stays
whole, and runs in eager. Calls that draw random numbers stay: eager's draws are eager's.
"""

import json
import operator

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from lathe._composites import kept_whole
from lathe._graph_json import Unwritable, write
from lathe._handle import LatheError
from lathe._load import Model
from lathe._memory import Graph, RefusedCalls

aten = torch.ops.aten
MAX_DEPTH = 4
MAX_CALLS = 200  # that one becomes

class Decompositions:
    """Of one graph's calls. `sizes`: its placeholders of symbolic sizes; `options`: the library's;
    `elsewhere`: of a graph, the calls that are on another device.
    """

    def __init__(self, sizes, options, elsewhere):
        self.sizes, self.elsewhere = sizes, elsewhere
        # A trial is neither kept nor measured, and decisions are for other calls.
        others = ("cache", "force", "mode")
        self.options = {name: value for name, value in options.items() if name not in others}
        self.traced = {}  # by signature; None: such a call stays whole
        self.counts = {}  # of calls that were replaced, by target

    def replace(self, node, depth=0):
        """Whether the call is gone: others are in its place, which Lathe runs."""
        signature = signature_of(node)
        if signature not in self.traced:
            self.traced[signature] = self.trace(node, depth) if depth < MAX_DEPTH else None
        graph = self.traced[signature]
        if graph is None:
            return False
        of_trace = node.graph.find_nodes(op="placeholder")
        sizes = of_trace[len(of_trace) - len(self.sizes):] if depth else self.sizes
        inline(node, graph, sizes)
        if depth == 0:
            self.counts[str(node.target)] = self.counts.get(str(node.target), 0) + 1
        return True

    def trace(self, node, depth):
        """A graph of the call's inputs, then the sizes, that gives its results; None where Lathe
        refuses a part of it.
        """
        decompose = decomposition_of(node.target)
        # What asks for the value of a size leaves a guard, and each other value compiles anew.
        has_sizes = any(isinstance(n.meta.get("val"), torch.SymInt) for n in argument_nodes(node))
        if decompose is None or has_sizes:
            return None
        inputs = sources_of(node)

        def run(*values):
            of = dict(zip(inputs, values))
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), of.__getitem__)
            result = decompose(*args, **kwargs)
            return tuple(result) if isinstance(result, (tuple, list)) else (result,)

        values = [source.meta["val"] for source in (*inputs, *self.sizes)]
        try:
            with kept_whole():
                module = make_fx(run)(*values)
        except Exception:  # of PyTorch's decomposition: it may refuse what its kernels take
            return None
        graph = module.graph
        graph.eliminate_dead_code()
        placeholders = graph.find_nodes(op="placeholder")
        for placeholder, value in zip(placeholders, values):
            placeholder.meta["val"] = value
        if not finish(graph, node, placeholders[: len(inputs)]) or not self.runs(module, depth):
            return None
        return graph

    def runs(self, module, depth):
        """Whether Lathe runs all of it, after calls in there were replaced too."""
        while len(module.graph.nodes) <= MAX_CALLS:
            if self.elsewhere(module.graph):
                return False
            try:
                # Constants of the trace cannot be written, nor what gives no tensor be run.
                program = write(module)
                options = self.options | ({"dynamic": True} if program["range_constraints"] else {})
                Model(Graph(json.dumps(program), {}), options, {})
                return True
            except RefusedCalls as error:
                names = {call["node"] for call in error.calls}
            except Unwritable as error:
                names = {error.node.name} if error.node is not None else set()
            except (LatheError, MemoryError):
                return False
            refused = [n for n in module.graph.nodes if n.name in names and is_call(n)]
            if not refused or not all(self.replace(call, depth + 1) for call in refused):
                return False
        return False


def attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
    enable_gqa=False,
):
    """With as many heads of keys as of queries, where it has fewer; else by matrix products."""
    if dropout_p != 0:
        raise NotImplementedError("it draws numbers")
    heads = [t.shape[-3] if t.dim() > 2 else 1 for t in (query, key, value)]
    if heads[0] == heads[1] == heads[2]:
        return aten._scaled_dot_product_attention_math.default.decompose(
            query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa
        )[0]
    wide = [with_heads(t, query) for t in (key, value)]
    return aten.scaled_dot_product_attention.default(
        query, *wide, attn_mask, 0.0, is_causal, scale=scale
    )


def with_heads(tensor, query):
    """Each head as often as the query has heads for it, one after another."""
    *batch, heads, rows, columns = tensor.shape
    times = query.shape[-3] // heads
    wide = tensor.unsqueeze(-3).expand(*batch, heads, times, rows, columns)
    return wide.reshape(*batch, heads * times, rows, columns)


def var_mean(x, dim=None, *, correction=None, keepdim=False):
    variance = aten.var.correction(x, dim, correction=correction, keepdim=keepdim)
    return variance, aten.mean.dim(x, dim, keepdim)


def std_mean(x, dim=None, *, correction=None, keepdim=False):
    deviation = aten.std.correction(x, dim, correction=correction, keepdim=keepdim)
    return deviation, aten.mean.dim(x, dim, keepdim)


# Where PyTorch's table has ops of its own below ATen, or a kernel that only the CPU has.
OTHERS = {
    aten.scaled_dot_product_attention.default: attention,
    aten.var_mean.correction: var_mean,
    aten.std_mean.correction: std_mean,
    aten._unsafe_index_put.default: aten.index_put.default,
}
# What a call's node says of where it stands in the user's program.
LOCATION = ("stack_trace", "nn_module_stack", "source_fn_stack")


def signature_of(node):
    """Equal for calls that one trace stands for."""

    def text(value):
        if isinstance(value, torch.fx.Node):
            value = value.meta.get("val")
        if isinstance(value, torch.Tensor):
            return str((value.dtype, tuple(value.shape), value.stride(), value.device))
        if isinstance(value, (tuple, list)):
            return f"[{', '.join(map(text, value))}]"
        return repr(value)

    named = (f"{name}={text(value)}" for name, value in sorted(node.kwargs.items()))
    repeated = [sources_of(node).index(source) for source in argument_nodes(node)]
    asked_for = sorted(user.args[1] for user in node.users if user.target is operator.getitem)
    return f"{node.target}({', '.join([*map(text, node.args), *named])}) {repeated} {asked_for}"


def argument_nodes(node):
    """The nodes among a call's arguments, each as often as it stands there."""
    found = []
    torch.fx.node.map_arg((node.args, node.kwargs), found.append)
    return found


def is_call(node):
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


def decomposition_of(op):
    """What computes the op by others; None where PyTorch has nothing, or it draws numbers."""
    if not isinstance(op, torch._ops.OpOverload):
        return None
    if op in OTHERS:
        return OTHERS[op]
    if torch.Tag.nondeterministic_seeded in op.tags or op._schema.is_mutable:
        return None
    found = torch._decomp.decomposition_table.get(op)
    if found is None and op._can_decompose():
        found = op.decompose
    return found


def sources_of(node):
    """What a call reads, each once."""
    return list(dict.fromkeys(node.all_input_nodes))


def results_of(node):
    """(the fake values of a call, which of them somebody asks for); None for another use of it."""
    value = node.meta["val"]
    if isinstance(value, torch.Tensor):
        return (value,), {0}
    if any(user.target is not operator.getitem for user in node.users):
        return None
    return tuple(value), {user.args[1] for user in node.users}


def finish(graph, node, inputs):
    """Makes the graph give what the call gives: tensors of their own. False where they differ."""
    output = next(iter(graph.find_nodes(op="output")))
    given, found = list(output.args[0]), results_of(node)
    if found is None or len(given) < len(found[0]):
        return False
    expected, wanted = found
    storages = {storage_of(source) for source in inputs} - {None}
    for i in wanted:
        if not alike(given[i], expected[i]):
            return False
        if storage_of(given[i]) in storages:
            # The call made a new tensor, and something may rely on it.
            with graph.inserting_before(output):
                clone = graph.call_function(aten.clone.default, (given[i],))
            clone.meta = {**given[i].meta, "val": expected[i]}
            given[i] = clone
    # What of several results nobody asks for need not be there.
    output.args = (tuple(value for i, value in enumerate(given) if i in wanted),)
    graph.eliminate_dead_code()
    return True


def inline(node, traced, sizes):
    """Puts a copy of the traced calls where the call is; `sizes`: of the call's graph."""
    nodes = list(traced.nodes)
    placeholders = traced.find_nodes(op="placeholder")
    place = dict(zip(placeholders, [*sources_of(node), *sizes]))
    with node.graph.inserting_before(node):
        for call in nodes[len(placeholders) : -1]:
            place[call] = node.graph.node_copy(call, place.__getitem__)
            place[call].meta = call.meta | {k: node.meta[k] for k in LOCATION if k in node.meta}
    values = [place[value] for value in nodes[-1].args[0]]
    if isinstance(node.meta["val"], torch.Tensor):
        node.replace_all_uses_with(values[0])
    else:
        wanted = sorted(results_of(node)[1])
        for user in list(node.users):
            user.replace_all_uses_with(values[wanted.index(user.args[1])])
            node.graph.erase_node(user)
    node.graph.erase_node(node)


def alike(result, expected):
    """Whether a call's result is what stands for it; numbers among results stay eager's."""
    value = result.meta.get("val") if isinstance(result, torch.fx.Node) else None
    return (
        isinstance(value, torch.Tensor)
        and isinstance(expected, torch.Tensor)
        and value.dtype == expected.dtype
        and value.device == expected.device
        and str(tuple(value.shape)) == str(tuple(expected.shape))
    )


def storage_of(node):
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None
