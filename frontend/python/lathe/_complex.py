"""Complex numbers as the pairs of reals that they are to the library, and back: no copies."""

import sys

import numpy as np


def in_reals(value):
    """A tensor of complex numbers with their parts in a last dim; any other as it is."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return torch.view_as_real(value.detach().resolve_conj()) if value.is_complex() else value
    array = np.asarray(value)
    if array.dtype.kind != "c":
        return value
    return np.ascontiguousarray(array)[..., None].view(array.real.dtype).reshape(*array.shape, 2)


def in_complex(value):
    """The other way."""
    if isinstance(value, np.ndarray):
        return value.view(np.result_type(value.dtype, np.complex64))[..., 0]
    return sys.modules["torch"].view_as_complex(value)
