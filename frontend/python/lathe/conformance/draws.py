"""Whether a call draws random numbers, which are then the backend's own."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Draws(TorchDispatchMode):
    """Sees whether an operator moves a generator. Samples of PyTorch's databases set the seed
    themselves, so that results do not show it; and attention may draw, but mostly does not.
    """

    found = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded not in function.tags:
            return function(*args, **(kwargs or {}))
        before = states()
        result = function(*args, **(kwargs or {}))
        self.found |= not all(map(torch.equal, before, states()))
        return result


def states():
    devices = torch.cuda.default_generators[: torch.cuda.device_count()]
    return [generator.get_state() for generator in (torch.default_generator, *devices)]
