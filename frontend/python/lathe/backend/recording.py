"""A graph that is cut, as one CUDA graph: its pieces and eager's calls between them, recorded once.

Mode reduce-overhead lets the library record each of its programs by itself; where eager's calls
stand between, launches of both take longer than their work. What a call brings is copied to where
the recording reads it, what it returns is copied out, so that callers own it. The first call runs
as it is: what libraries do once is done before the recording.
"""

import threading

import torch

from lathe._handle import LatheError
from lathe.backend.left_to_eager import draws, tensors_of
from lathe.backend.pieces import is_mutating, is_symbolic


def unrecordable(graph, in_eager, given, device):
    """Why no recording can have a graph with the calls `in_eager` and the placeholders `given` that
    each call brings; None when one may.
    """
    if any(map(is_symbolic, graph.nodes)):
        return "its sizes vary"
    if any(not is_on(node, device) or not tensors_of(node) for node in given):
        return f"an argument is not on '{device}'"
    changing = next(filter(is_mutating, graph.nodes), None)
    if changing is not None:
        return f"'{changing.target}' changes an input"
    for node in in_eager:
        if not isinstance(node.target, torch._ops.OpOverload):
            return f"'{node.target}' runs in eager"
        if draws(node):
            return f"'{node.target}' draws from PyTorch's generator"
        if not all(is_on(n, device) for n in (*node.all_input_nodes, node)):
            return f"'{node.target}' runs in eager, and not on '{device}' alone"
    return None


def is_on(node, device):
    return all(tensor.device == device for tensor in tensors_of(node))


class Recording:
    """`run`, a function of a list of tensors, recorded when it is called again.

    The tensors at places `fixed` are always the same. give_up(reason) gives what runs from now on
    when the GPU refuses. While report.is_timed nothing is replayed.
    """

    def __init__(self, run, fixed, report, give_up, record=None):
        self.run, self.fixed, self.report, self.give_up = run, fixed, report, give_up
        self.record = record or record_on_gpu
        self.lock = threading.Lock()
        self.is_warm = False
        self.replay = None
        self.stream = None  # of the latest call

    def __call__(self, args):
        with self.lock:
            if self.report.is_timed or not self.is_warm:
                self.is_warm = True
                return self.run(args)
            if self.replay is None:
                try:
                    self.prepare(args)
                except (RuntimeError, LatheError) as error:
                    self.run = self.give_up(str(error).split("\n", 1)[0])
                    self.is_warm = False
                    return self.run(args)
            self.follow()
            if self.taken:
                torch._foreach_copy_(self.given, [args[k] for k in self.taken])
            self.replay()
            copies = {id(tensor): copy_of(tensor) for tensor in self.made}
        return [copies.get(id(value), value) if place is None else args[place]
                for value, place in self.returned]

    def prepare(self, args):
        """Records; RuntimeError where that cannot be."""
        self.taken = [k for k in range(len(args)) if k not in self.fixed]
        with torch.inference_mode(False):
            own = [value if k in self.fixed else copy_of(value) for k, value in enumerate(args)]
        self.own = own  # also keeps the memory of those that are fixed
        self.given = [own[k] for k in self.taken]
        replay, results = self.record(self.run, own)
        places = {id(tensor): k for k, tensor in enumerate(own)}
        self.returned = [(value, places.get(id(value))) for value in results]
        self.made = [value for value, place in self.returned
                     if place is None and isinstance(value, torch.Tensor)]
        for tensor in self.made:
            check_is_plain(tensor)
        self.replay = replay

    def follow(self):
        """Lets this call's stream wait for the latest call, which has the same memory."""
        device = next((tensor.device for tensor in self.own if tensor.is_cuda), None)
        if device is None:
            return
        stream = torch.cuda.current_stream(device)
        if self.stream is not None and stream != self.stream:
            stream.wait_stream(self.stream)
        self.stream = stream


def record_on_gpu(run, args):
    """(what replays it on the current stream, its results, which each replay writes anew)."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(next(tensor.device for tensor in args if tensor.is_cuda)):
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            results = run(args)
    return graph.replay, results


def copy_of(tensor):
    """With its strides."""
    check_is_plain(tensor)
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype,
                               device=tensor.device).copy_(tensor)


def check_is_plain(tensor):
    if torch._debug_has_internal_overlap(tensor) != 0:
        raise RuntimeError("elements of an argument or a result share memory")
