"""What calls go through: the C extension where it could be built, and ctypes where not."""

import importlib.machinery
import importlib.util
import os
import pathlib
import sys

import numpy as np

VERSION = 3  # of what call.cpp and this package say to each other
NAME = "lathe._call"
_met = set()


def candidates():
    """Paths to try: $LATHE_EXTENSION, beside this file, the build folder of the tree around it."""
    if os.environ.get("LATHE_EXTENSION"):
        yield pathlib.Path(os.environ["LATHE_EXTENSION"])
        return
    here = pathlib.Path(__file__).resolve().parent
    yield from (here / f"_call{end}" for end in importlib.machinery.EXTENSION_SUFFIXES)
    for folder in here.parents:
        yield folder / "bazel-bin/frontend/python/_call.abi3.so"


def load():
    """(the module or None, a sentence that says which or why)"""
    if os.environ.get("LATHE_EXTENSION") == "none":
        return None, "ctypes: LATHE_EXTENSION is 'none'"
    path = next((p for p in candidates() if p.is_file()), None)
    if path is None:
        return None, "ctypes: the extension is not built"
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        return None, f"ctypes: {path} does not load: {error}"
    if module.VERSION != VERSION:
        return None, f"ctypes: {path} has version {module.VERSION}, expected {VERSION}"
    return module, f"the extension {path}"


module, calls_through = load()


def meet(tensors):
    """Tells the extension of the frameworks that tensors are of, each once."""
    if len(_met) == len(FRAMEWORKS):
        return
    for tensor in tensors:
        name = "numpy" if isinstance(tensor, np.ndarray) else "torch"
        if name not in _met:
            FRAMEWORKS[name]()
            _met.add(name)


def meet_numpy():
    module.use_arrays(np.ndarray, np.empty)


def meet_torch():
    torch = sys.modules["torch"]
    # Of DLPack 1.3. Where PyTorch is older, calls with its tensors go through Python.
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if exchange is not None:
        module.use_tensors(torch.Tensor, torch.nn.Parameter, torch.Tensor.is_neg, exchange)


FRAMEWORKS = {"numpy": meet_numpy, "torch": meet_torch}
