"""Numbers of dtypes that the library has not, as the tensors that they are to it, and back: no
copies. Complex numbers are pairs of reals in a last dim, those of 8 bits are bytes.
"""

import sys

import numpy as np

from lathe._handle import LatheError

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


def encoding_of(value):
    """What the library calls its numbers: "complex", "float8_e4m3fn"; None for its own dtypes."""
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if name in FLOAT8:
        return name
    return "complex" if name.startswith("complex") else None


def encode(value, expected=None, name=None):
    """A tensor as the library takes it; one of the library's own dtypes as it is. Raises where an
    argument `name` is `expected` to be of other numbers.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if expected is not None and encoding_of(value) != expected:
            dtype = str(value.dtype).removeprefix("torch.")
            raise LatheError(f"'{name}' is {expected}, got {dtype}")
        if value.is_complex():
            return torch.view_as_real(value.detach().resolve_conj())
        return value.detach().view(torch.uint8) if encoding_of(value) else value
    array = np.asarray(value)
    if array.dtype.kind != "c":
        return value
    return np.ascontiguousarray(array)[..., None].view(array.real.dtype).reshape(*array.shape, 2)


def decode(value, name):
    """The other way: NumPy has no numbers of 8 bits, there they stay bytes. None: as it is."""
    if name is None:
        return value
    if isinstance(value, np.ndarray):
        if name != "complex":
            return value
        return value.view(np.result_type(value.dtype, np.complex64))[..., 0]
    torch = sys.modules["torch"]
    return torch.view_as_complex(value) if name == "complex" else value.view(getattr(torch, name))
