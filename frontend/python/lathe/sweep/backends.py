"""The backends that a sweep compares: what each is, which settings it has, how it is called."""

import dataclasses
import importlib
import importlib.util

RECOMPILE_LIMIT = 64


class Refused(Exception):
    """Why a job is refused, as a sentence."""


@dataclasses.dataclass(frozen=True)
class Backend:
    """A row of the table."""

    kind: str  # "call": the module itself; "dynamo": through torch.compile; "onnx": exported
    modules: tuple = ()  # imported first; Dynamo learns of the backend by that
    install: str = ""  # what installs them
    has_modes: bool = False  # whether it knows torch.compile's modes and options
    packages: tuple = ()  # that its figures depend on, beside PyTorch


BACKENDS = {
    "eager": Backend("call"),
    "lathe": Backend("dynamo", ("lathe.backend",), "a build of Lathe that has it", has_modes=True),
    "inductor": Backend("dynamo", has_modes=True),
    "aot_eager": Backend("dynamo"),
    "cudagraphs": Backend("dynamo"),
    "openvino": Backend("dynamo", ("openvino.torch",), "pip install openvino",
                        packages=("openvino",)),
    "zentorch": Backend("dynamo", ("zentorch",), "pip install zentorch", packages=("zentorch",)),
    "onnxruntime": Backend("onnx", ("onnxruntime", "onnx", "onnxscript"),
                           "pip install onnxruntime onnx onnxscript",
                           packages=("onnxruntime", "onnx", "onnxscript")),
}
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")


def split(name):
    """(backend, mode or None) of "BACKEND" or "BACKEND:MODE", as `against` has them."""
    backend, _, mode = name.partition(":")
    return backend, mode or None


def need(name):
    """Refuses a backend whose modules are not there. Imports nothing that is large."""
    for module in BACKENDS[name].modules:
        try:
            found = importlib.util.find_spec(module)
        except ImportError:  # its package is not there
            found = None
        if found is None:
            how = BACKENDS[name].install
            raise Refused(f"backend '{name}' is not installed: no module {module}; needs {how}")


def prepare(name):
    """Imports what a backend needs, so that no first call pays for it."""
    import torch._dynamo

    torch._dynamo.config.recompile_limit = RECOMPILE_LIMIT
    torch._dynamo.config.fail_on_recompile_limit_hit = True  # never silently eager
    if BACKENDS[name].kind == "dynamo" and name == "inductor":
        importlib.import_module("torch._inductor.compile_fx")
    for module in BACKENDS[name].modules:
        importlib.import_module(module)


def build(settings, model, args, kwargs):
    """What to call with (*args, **kwargs). Compiles nothing yet where the backend is lazy."""
    name = settings["backend"]
    kind = BACKENDS[name].kind
    if kind == "call":
        return model
    if kind == "onnx":
        return onnx_session(model, args, kwargs, settings)
    import torch

    chosen = {}
    if settings["options"]:
        chosen["options"] = settings["options"]
    elif settings["mode"]:
        chosen["mode"] = settings["mode"]
    return torch.compile(
        model, backend=name, dynamic=settings["dynamic"], fullgraph=settings["fullgraph"], **chosen
    )


def onnx_session(model, args, kwargs, settings):
    """The model exported to ONNX, run by onnxruntime; tensors of the CPU in and out."""
    import onnxruntime
    import torch

    if kwargs:
        raise Refused("onnxruntime takes positional tensors only, the model has keywords")
    program = torch.onnx.export(model, args, dynamo=True, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    session = onnxruntime.InferenceSession(
        program.model_proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [item.name for item in session.get_inputs()]

    def call(*tensors):
        feed = {name: tensor.numpy() for name, tensor in zip(names, tensors)}
        return [torch.from_numpy(array) for array in session.run(None, feed)]

    return call
