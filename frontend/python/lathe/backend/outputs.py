"""Outputs with the strides and the aliasing that eager gives them.

Lathe's tensors are row-major and new. What eager returns may be a view, with other strides, of a
tensor that another output is or shows too; callers see both, and AOTAutograd rebuilds only views of
inputs. So a graph returns the tensors that own the memory, once each, and views of them are made
after the run.
"""

import itertools

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy.printers import PythonPrinter


class Sizes:
    """Numbers of symbolic sizes, from the integers among a call's arguments."""

    def __init__(self, placeholders):
        self.places = {}  # of each symbol, the argument that is it
        for i, node in enumerate(placeholders):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and value.node.expr.is_symbol:
                self.places.setdefault(value.node.expr, i)

    def code(self, size):
        """Python of a size, where `args` are the call's."""
        if isinstance(size, int):
            return str(size)
        expr = size.node.expr
        symbols = sorted(expr.free_symbols, key=str)
        names = {s: type(s)(f"size_{i}_") for i, s in enumerate(symbols)}
        text = PythonPrinter().doprint(expr.xreplace(names))
        for symbol, name in names.items():
            text = text.replace(str(name), f"args[{self.places[symbol]}]")
        return text

    def knows(self, value):
        """Whether arguments say a tensor's sizes: those that elements decide they do not."""
        parts = (*value.shape, *value.stride(), value.storage_offset())
        exprs = (part.node.expr for part in parts if isinstance(part, torch.SymInt))
        return all(self.places.keys() >= expr.free_symbols for expr in exprs)

    def function(self, sizes):
        """args -> a tuple of numbers."""
        body = "".join(f"{self.code(size)}, " for size in sizes)
        import math

        return eval(f"lambda args: ({body})", {"math": math})  # of our own printing


def is_row_major(value):
    """Whether it is known to be contiguous at every size."""
    expected = 1
    for size, stride in zip(reversed(value.shape), reversed(value.stride())):
        if statically_known_true(size == 1):
            continue
        if not statically_known_true(stride == expected):
            return False
        expected = expected * size
    return True


def dense_order(value):
    """The dims from the outermost to the innermost, of a tensor without gaps; None of others."""
    for order in itertools.permutations(range(value.dim())) if value.dim() <= 5 else ():
        if is_row_major_in(value, order):
            return order
    return None


def is_row_major_in(value, order):
    expected = 1
    for dim in reversed(order):
        if not statically_known_true(value.stride(dim) == expected):
            return False
        expected = expected * value.shape[dim]
    return True


def in_order(tensor, order):
    """A copy whose dims lie so."""
    back = [order.index(dim) for dim in range(len(order))]
    return tensor.permute(order).contiguous().permute(back)


def is_alike(value, other):
    """Whether they are views of the same numbers."""
    kinds = [(v.dtype, v.is_conj(), v.is_neg()) for v in (value, other)]
    return kinds[0] == kinds[1]


def storage_of(node):
    return node.meta["val"].untyped_storage()._cdata


class Outputs:
    """How what a graph returns becomes what eager returns."""

    def __init__(self, graph):
        """Changes what the graph returns: the tensors that own memory, and what is no tensor."""
        self.steps = None  # None: what the graph returns is it
        output = next(n for n in reversed(graph.nodes) if n.op == "output")
        returned = list(output.args[0])
        owners = {}
        for node in graph.nodes:
            if isinstance(node.meta.get("val"), torch.Tensor):
                owners.setdefault(storage_of(node), node)
        is_tensor = [
            isinstance(o, torch.fx.Node) and isinstance(o.meta.get("val"), torch.Tensor)
            for o in returned
        ]
        storages = [storage_of(o) if t else None for o, t in zip(returned, is_tensor)]
        self.sizes = Sizes([n for n in graph.nodes if n.op == "placeholder"])
        kept, steps = [], []
        for node, storage in zip(returned, storages):
            owner = owners.get(storage)
            is_alone = storage is None or storages.count(storage) == 1
            of_input = owner is not None and owner.op == "placeholder"
            # Views of arguments are AOTAutograd's, which reads strides of those whose sizes vary.
            is_fixed = of_input and all(isinstance(s, int) for s in node.meta["val"].shape)
            is_left = storage is None or is_fixed or (
                (of_input or is_alone) and self.is_plain(node))
            # Elements decide its sizes, or it is the same bytes as another dtype or as conjugates:
            # it is computed, as eager has it.
            is_known = not is_left and self.is_known(node) and self.is_known(owner)
            if not is_known or of_input:
                layout = None if is_left else self.layout_of(node)
                steps.append((self.place(kept, node), layout, None))
            elif not is_alike(node.meta["val"], owner.meta["val"]):
                steps.append((self.place(kept, node), self.layout_of(node), None))
            else:
                steps.append((self.place(kept, owner), self.layout_of(owner), self.view(node)))
        if any(owner or view for _, owner, view in steps):
            self.steps = steps
            output.args = (tuple(kept),)
            graph.eliminate_dead_code()

    def is_known(self, node):
        return self.sizes.knows(node.meta["val"])

    @staticmethod
    def is_plain(node):
        value = node.meta["val"]
        return is_row_major(value) and statically_known_true(value.storage_offset() == 0)

    @staticmethod
    def place(kept, node):
        if isinstance(node, torch.fx.Node) and node in kept:
            return kept.index(node)
        kept.append(node)
        return len(kept) - 1

    def layout_of(self, node):
        """(tensor, args) -> the tensor as eager has it in memory; None where it is row-major. Of
        sizes that elements decide the order of dims is all that is known.
        """
        value = getattr(node, "meta", {}).get("val")
        if not isinstance(value, torch.Tensor) or is_row_major(value):
            return None
        if not self.is_known(node):
            order = dense_order(value)
            return order and (lambda tensor, args: in_order(tensor, order))
        shape, strides = self.sizes.function(value.shape), self.sizes.function(value.stride())
        return lambda tensor, args: with_strides(tensor, shape(args), strides(args))

    def view(self, node):
        value = node.meta["val"]
        functions = (self.sizes.function(part) for part in (value.shape, value.stride()))
        return (*functions, self.sizes.function((value.storage_offset(),)))

    def finish(self, args, results):
        """What eager returns, of a call's arguments and what the graph returned."""
        if self.steps is None:
            return results
        laid_out, finished = {}, []
        for place, layout, view in self.steps:
            value = results[place]
            if layout is not None:
                if place not in laid_out:
                    laid_out[place] = layout(value, args)
                value = laid_out[place]
            if view is not None:
                shape, strides, (offset,) = (function(args) for function in view)
                value = torch.as_strided(value, shape, strides, offset)
            finished.append(value)
        return finished


def with_strides(value, shape, strides):
    """The tensor itself where it lies so; else a copy that does. Elements that are one in memory,
    by a stride of 0, are equal.
    """
    if value.stride() == strides:
        return value
    for dim, stride in enumerate(strides):
        if stride == 0 and shape[dim] > 1:
            value = value.narrow(dim, 0, 1)
    result = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device)
    return result.copy_(value).expand(shape)
