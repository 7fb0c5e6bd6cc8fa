"""Calls in eager that read weights alone, or nothing: they run when weights are packed, not in each
call.

A table of positions that a model keeps on the CPU, or makes there, and moves to the GPU is such a
one: where it stands it would cost a copy between the two in each call, and cut the graph.
"""

import operator

from lathe.backend.eager_views import is_view
from lathe.backend.scalars import is_repeatable


def settled_calls(graph, refused, weights):
    """Those of `refused`, by name, that give the same until one of `weights`, by name, changes, and
    what they alone read, in order. What the graph returns, or shows in a view, is not among them:
    callers may write to it.
    """
    steady = steady_values(graph, weights)
    wanted = set()
    for node in reversed(steady):
        if node.name in refused or node.users and all(n in wanted for n in node.users):
            wanted.add(node)
    settled = {}
    for node in steady:
        sources = node.all_input_nodes
        is_known = all(n in settled or n.name in weights for n in sources)
        if is_known and (node in wanted or is_part(node) and sources[0] in settled):
            settled[node] = None
    return list(settled)


def steady_values(graph, weights):
    """Calls whose results depend on weights alone, or on nothing, and that nobody may write to."""
    shown = shown_by(graph)
    steady = {}
    for node in graph.nodes:
        if ((is_part(node) or is_steady(node)) and node not in shown
                and all(n in steady or n.name in weights for n in node.all_input_nodes)):
            steady[node] = None
    return list(steady)


def is_part(node):
    return node.op == "call_function" and node.target is operator.getitem


def is_steady(node):
    """What takes nothing may still read what PyTorch does not see, when it is not PyTorch's."""
    return is_repeatable(node) and (bool(node.all_input_nodes) or node.target.namespace == "aten")


def shown_by(graph):
    """What the graph returns, and what it returns views and parts of."""
    shown = {n for node in graph.nodes if node.op == "output" for n in node.all_input_nodes}
    for node in reversed(graph.nodes):
        if node in shown and (is_view(node) or node.target is operator.getitem):
            shown.update(node.all_input_nodes)
    return shown
