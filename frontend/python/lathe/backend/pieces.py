"""A graph cut where Lathe refuses calls: pieces that Lathe runs, and pieces that eager runs.

Calls keep their order, so whatever a random number generator or a change of an input decides, it
decides as in eager. That costs more pieces than sorting calls would; each is one call of the
library.
"""

import dataclasses
import operator

import torch
from torch._higher_order_ops.effects import with_effects
from torch.fx import Graph, GraphModule, Node

CHECKS = (torch.ops.aten._linalg_check_errors.default,)


@dataclasses.dataclass
class Piece:
    """Calls that follow one another and run in one place."""

    runs_in: str  # "lathe" or "eager"
    nodes: list
    inputs: list = dataclasses.field(default_factory=list)  # values from outside that it reads
    outputs: list = dataclasses.field(default_factory=list)  # values that somebody behind it reads
    is_settled: bool = False  # its results hold until weights change

    @property
    def names(self):
        """What tells it from other pieces of the graph."""
        return self.runs_in, tuple(node.name for node in self.nodes)

    def module(self):
        """The piece as a graph of its own."""
        graph, copies = Graph(), {}
        for node in self.inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = dict(node.meta)
        graphs = {}  # that calls carry
        for node in self.nodes:
            for source in node.all_input_nodes:
                if source.op == "get_attr" and source not in copies:
                    graphs[source.target] = operator.attrgetter(source.target)(owner_of(source))
                    copies[source] = graph.create_node("get_attr", source.target)
            copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies[node] for node in self.outputs))
        return GraphModule(graphs, graph)


def put_checks_last(graph):
    """Calls that raise or do nothing, behind all that computes and before what changes an input:
    elsewhere each would cut the graph in two.
    """
    places = {node: i for i, node in enumerate(graph.nodes)}
    ends = [n for n in graph.nodes if n.op == "output" or is_mutating(n)]
    anchor, end = ends[0], places[ends[0]]
    moved = set()
    for node in reversed(list(graph.nodes)):
        if node.target is not with_effects or node.args[1] not in CHECKS or places[node] > end:
            continue
        tokens = list(node.users)
        readers = [user for token in tokens for user in token.users]
        if all(user in moved or places[user] >= end for user in readers):
            for part in (node, *tokens):
                anchor.prepend(part)
            anchor = node
            moved.update((node, *tokens))


def is_mutating(node):
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def owner_of(node):
    return node.graph.owning_module


def is_tensor_call(node):
    """Whether it makes or changes tensors; the others compute sizes, or take a result apart."""
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    return not is_number(node)


def cut(graph, refused, settled=()):
    """Pieces in the graph's order; those of `refused`, by name, are eager's, those of them that are
    `settled` a piece before all others. What computes numbers from sizes is in each piece that
    reads it: Lathe's give tensors alone.
    """
    pieces, free = [], number_calls(graph, refused)
    for node in graph.nodes:
        if node.op != "call_function" or node in free or node in settled:
            continue
        runs_in = place_of(node, refused)
        if runs_in is None:  # a size: eager's Python, wherever it stands
            runs_in = "eager" if not pieces else pieces[-1].runs_in
        if not pieces or pieces[-1].runs_in != runs_in:
            pieces.append(Piece(runs_in, []))
        pieces[-1].nodes.append(node)
    if settled:
        pieces.insert(0, Piece("eager", [*settled], is_settled=True))
    returned = [n for n in free if any(user.op == "output" for user in n.users)]
    if returned:
        pieces.append(Piece("eager", returned))
    places = {node: i for i, node in enumerate(graph.nodes)}
    sizes = [n for n in graph.nodes if n.op == "placeholder" and is_size(n)]
    for piece in pieces:
        own = set(piece.nodes)
        piece.nodes = sorted(own | read_in(own, free), key=places.__getitem__)
        connect(piece, sizes, free.keys() - own)
    return pieces


def number_calls(graph, refused):
    """Calls that compute numbers from numbers, in order."""
    return {n: None for n in graph.nodes if n.op == "call_function" and n.all_input_nodes
            and place_of(n, refused) is None and all(map(is_number, n.all_input_nodes))}


def read_in(nodes, free):
    """Those of `free` that the nodes read, or that such read in turn."""
    needed = {n for node in nodes for n in node.all_input_nodes}
    for node in reversed([*free]):
        if node in needed:
            needed.update(node.all_input_nodes)
    return needed & free.keys()


def place_of(node, refused):
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        return place_of(node.args[0], refused)
    if node.name in refused:
        return "eager"
    return "lathe" if is_tensor_call(node) else None


def is_size(node):
    return isinstance(node.meta.get("val"), torch.SymInt)


def is_number(node):
    return isinstance(node, Node) and isinstance(
        node.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)
    )


def connect(piece, sizes, copied):
    """Finds what the piece reads and gives, none of it `copied`. Lathe's get every symbol of the
    graph, so that they need not find sizes in tensors.
    """
    inside = set(piece.nodes)
    read = dict.fromkeys(
        source for node in piece.nodes for source in node.all_input_nodes
        if source not in inside and source.op != "get_attr"
    )
    has_symbols = any(is_symbolic(node) for node in (*piece.nodes, *read))
    if piece.runs_in == "lathe" and has_symbols:
        read.update(dict.fromkeys(sizes))
    piece.inputs = list(read)
    piece.outputs = [n for n in piece.nodes
                     if n not in copied and any(user not in inside for user in n.users)]


def is_symbolic(node):
    value = node.meta.get("val")
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return any(
        isinstance(size, torch.SymInt)
        for part in parts
        for size in (part.shape if isinstance(part, torch.Tensor) else (part,))
    )
