"""liblathe.so through ctypes: where it is found and what its functions are."""

import ctypes
import functools
import os
import pathlib

ABI_VERSION = 1
OUT_OF_MEMORY = 4  # of lathe_status
# Functions that libraries of this ABI version did not have at first: the bench opens such ones.
ADDED = (
    "lathe_share_state",
    "lathe_bind",
    "lathe_run_shaped",
    "lathe_artifacts",
    "lathe_load_memory",
    "lathe_refusals",
    "lathe_kernels",
    "lathe_set_timing",
    "lathe_copy_output",
    "lathe_run_sizes",
)

# The numbers of lathe_dtype, as NumPy and PyTorch spell them. NumPy has no bf16: its bits are u16.
_INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
NUMPY_DTYPES = (*_INTEGERS, "float16", "uint16", "float32", "float64")
TORCH_DTYPES = (*_INTEGERS, "float16", "bfloat16", "float32", "float64")


class Weight(ctypes.Structure):
    """lathe_weight."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]


class TensorInfo(ctypes.Structure):
    """lathe_tensor_info."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("num_bytes", ctypes.c_uint64),
    ]


def candidates():
    """Paths to try: $LATHE_LIBRARY, beside this file, the build folder of the tree around it."""
    if os.environ.get("LATHE_LIBRARY"):
        yield pathlib.Path(os.environ["LATHE_LIBRARY"])
        return
    here = pathlib.Path(__file__).resolve().parent
    yield here / "liblathe.so"
    for folder in here.parents:
        yield folder / "bazel-bin/frontend/api/liblathe.so"


def library():
    """The loaded library; an OSError that says how to get it when there is none."""
    path = next((p for p in candidates() if p.is_file()), None)
    if path is None:
        raise OSError(
            "liblathe.so was not found; build it with `bazel build //frontend/api:liblathe.so`, "
            "or set LATHE_LIBRARY to its path"
        )
    return open_library(path)


@functools.lru_cache
def open_library(path):
    """The library at `path`. Several may be open at once: their symbols are their own."""
    lib = ctypes.CDLL(str(path))
    handle, text = ctypes.c_void_p, ctypes.c_char_p
    pointers = ctypes.c_void_p  # an array's address, since ctypes takes long to convert an array
    signatures = {
        "lathe_abi_version": (ctypes.c_int32, []),
        "lathe_load": (handle, [text, text]),
        "lathe_load_memory": (handle, [text, ctypes.c_uint64, pointers, ctypes.c_int32, text]),
        "lathe_refusals": (text, [handle]),
        "lathe_free": (None, [handle]),
        "lathe_error": (text, [handle]),
        "lathe_last_status": (ctypes.c_int, [handle]),
        "lathe_num_inputs": (ctypes.c_int32, [handle]),
        "lathe_num_outputs": (ctypes.c_int32, [handle]),
        "lathe_input": (ctypes.POINTER(TensorInfo), [handle, ctypes.c_int32]),
        "lathe_output": (ctypes.POINTER(TensorInfo), [handle, ctypes.c_int32]),
        "lathe_set_stream": (None, [handle, handle]),
        "lathe_run": (ctypes.c_int, [handle, pointers, pointers]),
        "lathe_bind": (ctypes.c_int, [handle, pointers, ctypes.c_int32]),
        "lathe_run_shaped": (ctypes.c_int, [handle, pointers, ctypes.c_int32, pointers, pointers]),
        "lathe_artifacts": (text, [handle]),
        "lathe_kernels": (text, [handle]),
        "lathe_set_timing": (None, [handle, ctypes.c_int32]),
        "lathe_copy_output": (ctypes.c_int, [handle, ctypes.c_int32, pointers]),
        "lathe_run_sizes": (text, [handle]),
        "lathe_share_state": (ctypes.c_int, [handle, handle]),
        "lathe_last_run_ms": (ctypes.c_double, [handle]),
        "lathe_num_threads": (ctypes.c_int32, [handle]),
        "lathe_info": (text, [handle]),
    }
    for name, (result, arguments) in signatures.items():
        if name in ADDED and not hasattr(lib, name):
            continue
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    version = lib.lathe_abi_version()
    if version != ABI_VERSION:
        raise OSError(f"{path} has ABI version {version}, expected {ABI_VERSION}")
    return lib


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value
