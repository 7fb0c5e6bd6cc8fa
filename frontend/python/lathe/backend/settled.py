"""Calls in eager that read weights alone: they run when weights are packed, not in each call.

A table of positions that a model keeps on the CPU and moves to the GPU is such a one: where it
stands it would cost a copy between the two in each call, and cut the graph.
"""

import operator

from lathe.backend.eager_views import is_view
from lathe.backend.scalars import is_repeatable


def settled_calls(graph, refused, weights):
    """Those of `refused`, by name, in order, that give the same until one of `weights`, by name,
    changes. What the graph returns, or shows in a view, is not among them: callers may write to it.
    """
    shown = shown_by(graph)
    settled = {}
    for node in graph.nodes:
        is_part = node.op == "call_function" and node.target is operator.getitem
        sources = node.all_input_nodes
        if ((is_part or node.name in refused and is_repeatable(node)) and sources
                and node not in shown
                and all(n in settled or n.name in weights for n in sources)):
            settled[node] = None
    return list(settled)


def shown_by(graph):
    """What the graph returns, and what it returns views and parts of."""
    shown = {n for node in graph.nodes if node.op == "output" for n in node.all_input_nodes}
    for node in reversed(graph.nodes):
        if node in shown and (is_view(node) or node.target is operator.getitem):
            shown.update(node.all_input_nodes)
    return shown
