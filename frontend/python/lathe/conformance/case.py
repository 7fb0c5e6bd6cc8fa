"""A case: a module, arguments, and what to compare; and how it is judged."""

import copy
import dataclasses
import typing

import torch
from torch.utils import _pytree as pytree

from lathe.conformance import timing, verdict
from lathe.conformance.draws import Draws, states
from lathe.conformance.engine import Refused, Untraced, copies, first_line


@dataclasses.dataclass
class Case:
    """kind: "answer" compares results and what the call wrote to its arguments; "error" expects
    that eager raises, and so must the backend. calls: further (args, kwargs) for the compiled one,
    of other sizes. process: of results that PyTorch leaves a choice of, as the signs of singular
    vectors, what is the same for each of them; compared where results themselves differ.
    """

    name: str
    module: typing.Any
    args: tuple
    kwargs: dict = dataclasses.field(default_factory=dict)
    kind: str = "answer"
    calls: tuple = ()
    bounds: dict | None = None
    process: typing.Callable | None = None
    is_random: bool = False  # a graph that nobody would write, whose digits may be noise
    float64: bool = True  # whether the module can be run in float64 for the exact answer
    is_timed: bool = False  # beside eager, where it agrees
    measured: dict | None = None  # what timing.measure gave

    def describe(self):
        def text(leaf):
            if not isinstance(leaf, torch.Tensor):
                return repr(leaf)
            name = str(leaf.dtype).removeprefix("torch.")
            strides = "" if leaf.is_contiguous() else f" strides {leaf.stride()}"
            return f"{name}{list(leaf.shape)}{strides}"

        return str(pytree.tree_map(text, (self.args, self.kwargs)))[:400]


def run(module, args, kwargs):
    torch.manual_seed(0)
    with torch.no_grad():
        return module(*args, **kwargs)


def judge(case, engine):
    """(verdict, words)"""
    if case.kind == "error":
        return judge_error(case, engine)
    try:
        args, kwargs = copies((case.args, case.kwargs))
        wanted = run(case.module, args, kwargs), args, kwargs
        varies = draws(case) or is_unsteady(case, wanted[0])
    except Exception as error:
        return "untraced", f"eager: {first_line(error)}"
    try:
        with torch.no_grad():
            call = engine.prepare(case.module, *copies((case.args, case.kwargs)),
                                  calls=case.calls)
        for number, (args, kwargs) in enumerate([(case.args, case.kwargs), *case.calls]):
            if number:
                own = copies((args, kwargs))
                wanted = run(case.module, *own), *own
            own = copies((args, kwargs))
            found = run(call, *own), *own
            words = compare(case, found, wanted, (args, kwargs), varies)
            if words is not None and is_of_pytorch(case, engine, args, kwargs, found):
                return "untraced", f"PyTorch's own graph gives another answer: {words}"
            if words is not None:
                return "wrong", words if not number else f"call {number + 1}: {words}"
    except Refused as error:
        return "refused", str(error)
    except Untraced as error:
        return "untraced", str(error)
    except Exception as error:
        return "wrong", f"raises {first_line(error)}"
    if case.is_timed:
        case.measured = timing.measure(case.module, call, case.args, case.kwargs)
    return "agrees", ""


def draws(case):
    try:
        with Draws() as seen:
            run(case.module, *copies((case.args, case.kwargs)))
        return seen.found
    except Exception:  # torch.cond and its like run under no mode: does the generator move?
        torch._dynamo.reset()  # which has kept that they failed
        torch.manual_seed(0)
        before = states()
        run(case.module, *copies((case.args, case.kwargs)))
        return not all(map(torch.equal, before, states()))


def is_unsteady(case, wanted):
    """Whether results are what was in memory before."""
    again = run(case.module, *copies((case.args, case.kwargs)))
    return verdict.disagreement(again, wanted) is not None


def is_of_pytorch(case, engine, args, kwargs, found):
    """Whether what is not eager's answer is that of the graph that PyTorch made."""
    own = copies((args, kwargs))
    try:
        theirs = run(lambda *a, **k: engine.without_backend(case.module, a, k), *own), *own
    except Exception:
        return False
    return compare(case, found, theirs, (args, kwargs), False) is None


def compare(case, found, wanted, given, varies):
    """Results, then the arguments as the calls left them. Of what is random, or was in memory,
    only the types."""
    if varies:
        found, wanted = (pytree.tree_map_only(torch.Tensor, torch.zeros_like, x)
                         for x in (found, wanted))
        return verdict.disagreement(found[0], wanted[0])

    def exact():
        wide = pytree.tree_map_only(torch.Tensor, widened, copies(given))
        return run(changed(case.module, widened), *wide)

    exact_or_none = exact if case.float64 else lambda: None
    words = verdict.disagreement(found[0], wanted[0], case.bounds, exact_or_none)
    if words is not None and case.process is not None:
        words = verdict.disagreement(case.process(found[0]), case.process(wanted[0]), case.bounds,
                                     lambda: case.process(exact()))
    if words is not None and case.is_random:
        found = (without_chaos(case, found[0], wanted[0], given), *found[1:])
        words = verdict.disagreement(found[0], wanted[0], case.bounds, exact_or_none)
    if words is not None:
        return words
    words = verdict.disagreement(found[1:], wanted[1:], case.bounds)
    return None if words is None else f"arguments after the call: {words}"


def changed(module, change):
    """A copy of a module whose parameters and buffers went through a function of tensors."""
    if not isinstance(module, torch.nn.Module) or not module.state_dict():
        return module
    module = copy.deepcopy(module)
    for owner in module.modules():
        for held in (owner._parameters, owner._buffers):
            for name, tensor in held.items():
                if tensor is not None:
                    value = change(tensor.detach())
                    held[name] = torch.nn.Parameter(value, requires_grad=False) \
                        if held is owner._parameters else value
    return module


NUDGES = 3
NUDGE = 2.0**-22  # a last bit or two of f32


def without_chaos(case, found, wanted, given):
    """Results with eager's elements where eager's own move beyond the bounds when the last bits of
    its arguments and weights do: of sin(exp(exp(x))) nobody has the digits."""
    def nudged(tensor):
        if not tensor.is_floating_point() and not tensor.is_complex():
            return tensor
        real = tensor.real if tensor.is_complex() else tensor
        return tensor * (1 + NUDGE * torch.randn_like(real))

    moved = [torch.zeros(w.shape, dtype=torch.bool) for w in wanted]
    for seed in range(NUDGES):
        torch.manual_seed(seed)
        arguments = pytree.tree_map_only(torch.Tensor, nudged, copies(given))
        again = run(changed(case.module, nudged), *arguments)
        moved = [m | ~torch.isclose(a, w, equal_nan=True, **bounds_of(case, w))
                 for m, a, w in zip(moved, again, wanted)]
    return [torch.where(m, w, f) if f.shape == w.shape and f.dtype == w.dtype else f
            for m, f, w in zip(moved, found, wanted)]


def bounds_of(case, tensor):
    if tensor.is_floating_point() or tensor.is_complex():
        return case.bounds
    return {"rtol": 0, "atol": 0}  # as an answer's: a cast of 2.9999998 moves by a whole one


def widened(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def judge_error(case, engine):
    """Refused by both, or by neither: then it is a case as any other."""
    eager = raised(lambda: run(case.module, *copies((case.args, case.kwargs))))
    if eager is None:
        return judge(dataclasses.replace(case, kind="answer"), engine)

    def call():
        own = copies((case.args, case.kwargs))
        with torch.no_grad():
            return engine.prepare(case.module, *own)(*own[0], **own[1])

    if raised(call) is not None:
        return "agrees", ""
    own = copies((case.args, case.kwargs))
    if raised(lambda: run(lambda *a, **k: engine.without_backend(case.module, a, k), *own)) is None:
        return "untraced", f"PyTorch's own graph runs where eager raises {first_line(eager)}"
    return "wrong", f"runs where eager raises {first_line(eager)}"


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    return None


class Call(torch.nn.Module):
    """A function of the tensors among its arguments; all else is fixed."""

    def __init__(self, function, args, kwargs):
        super().__init__()
        self.function = function
        self.leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = tuple(self.leaves[i].detach() for i in self.places)
        self.leaves = [None if isinstance(x, torch.Tensor) else x for x in self.leaves]

    def forward(self, *tensors):
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)
