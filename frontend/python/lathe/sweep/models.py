"""Models by name: where each comes from, and its arguments.

    NAME                    a function of experiments/sweeps/models.py
    torchvision:NAME        torchvision.models.get_model, random weights
    timm:NAME               timm.create_model, random weights
    transformers:NAMEConfig a model made from that config class, random weights
    file:PATH.py:FUNCTION   a function that returns (module, args) or (module, args, kwargs)
    pt2:PATH                an archive of torch.export.save, called with its own example inputs

A JSON object behind the name gives arguments: transformers:BertConfig{"hidden_size": 128}. Of a
config class they are its fields, and of `tokens` (the length of a text) and `auto` (the AutoModel
class); of the others the function's.
"""

import hashlib
import importlib.util
import inspect
import json
import pathlib
import sys

ZOO = "experiments/sweeps/models.py"
TOKENS = 64
PICTURE = 224  # pixels, of a config that takes any
# Of a transformers model, the shape of the main input by its name, from the config `c`.
FLOAT_INPUTS = {
    "pixel_values": lambda c: (c.num_channels, *pair(getattr(c, "image_size", PICTURE))),
    "input_features": lambda c: (c.num_mel_bins, 2 * c.max_source_positions),
    "input_values": lambda c: (16000,),
}


class ModelError(Exception):
    """Why a model's name means nothing, as a sentence."""


def split(text):
    """{"source", "name", "arguments", and "function" of files} of a model's text."""
    head, brace, tail = text.partition("{")
    arguments = {}
    if brace:
        try:
            arguments = json.loads(brace + tail)
        except ValueError as error:
            raise ModelError(f"'{brace}{tail}' is no JSON object: {error}") from None
    source, colon, name = head.partition(":")
    if not colon:
        return {"source": "zoo", "name": head, "arguments": arguments}
    parts = {"source": source, "name": name, "arguments": arguments}
    if source == "file":
        parts["name"], colon, parts["function"] = name.rpartition(":")
        if not parts["name"]:
            raise ModelError(f"'{head}' names no function: file:PATH.py:FUNCTION")
    return parts


def tree_file(name):
    """A file of the tree around this package; a ModelError when there is none."""
    here = pathlib.Path(__file__)
    for start in (here.absolute(), here.resolve()):
        for folder in start.parents:
            if (folder / name).is_file():
                return folder / name
    raise ModelError(f"{name} was not found: sweeps are run from Lathe's tree")


def file_of(model, folder):
    """The file that a model is read from, or None. folder: what its path is relative to."""
    if model["source"] == "zoo":
        return tree_file(ZOO)
    if model["source"] in ("file", "pt2"):
        return pathlib.Path(folder, model["name"]).absolute()
    return None


def identity(model, folder):
    """What a model's answers depend on, as JSON: its name and arguments, or its file's bytes."""
    found = {key: model.get(key) for key in ("source", "name", "function", "arguments")}
    path = file_of(model, folder)
    if path is not None:
        del found["name"]
        found["bytes"] = hashlib.sha256(path.read_bytes()).hexdigest()
        if model["source"] == "zoo":
            found["function"] = model["name"]
    return found


def open_source(model, folder):
    """A function of the batch that makes (module, args) or (module, args, kwargs).

    Runs the model's file, or imports its package; the model itself is made later. A file is run
    before PyTorch is imported, so that one that fails does so at once.
    """
    return SOURCES[model["source"]](model, folder)


def place(made, source, dtype, target):
    """(module, args, kwargs) on the target, for inference; floating-point ones in the dtype.

    An archive keeps its dtypes: its graph has them written into it.
    """
    import torch

    module, args, *rest = made
    kwargs = rest[0] if rest else {}
    kind = None if source == "pt2" else getattr(torch, dtype)
    if isinstance(module, torch.nn.Module):
        if source != "pt2":
            module.eval()
        module = module.to(target, kind)

    def moved(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.to(target, kind if leaf.is_floating_point() else None)

    return module, *torch.utils._pytree.tree_map(moved, (tuple(args), dict(kwargs)))


def from_file(model, folder):
    path = file_of(model, folder)
    name = model["name"] if model["source"] == "zoo" else model["function"]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    function = getattr(module, name)

    def make(batch):
        arguments = dict(model["arguments"])
        if "batch" in inspect.signature(function).parameters:
            arguments["batch"] = batch
        made = function(**arguments)
        if not isinstance(made, tuple) or len(made) not in (2, 3):
            raise TypeError(f"{name} returned {type(made).__name__}, expected (module, args)")
        return made

    return make


def from_torchvision(model, folder):
    import torch

    declare_torchvision()
    import torchvision

    name = model["name"]

    def make(batch):
        made = torchvision.models.get_model(name, weights=None, **model["arguments"])
        weights = torchvision.models.get_model_weights(name)
        crop = next((w.transforms().crop_size for w in weights), [224])
        size = crop[0] if isinstance(crop, (list, tuple)) else crop
        return made, (torch.randn(batch, 3, size, size),)

    return make


def declare_torchvision():
    """Lets torchvision be imported, here or by timm and transformers, where its operators fail.

    The usual wheel is built for CUDA; beside a PyTorch for the CPU alone its library does not
    load, and importing fails at two operators whose shapes it declares unasked. No model for
    classification or segmentation needs them: they are declared without a kernel.
    """
    import torch

    found = importlib.util.find_spec("torchvision")
    if found is None or "torchvision" in sys.modules:
        return
    library = pathlib.Path(found.origin).parent / "_C.so"
    try:
        torch.ops.load_library(library)
    except OSError:
        fragment = torch.library.Library("torchvision", "FRAGMENT")
        fragment.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        fragment.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        declare_torchvision.kept = fragment  # the declarations go with it


def from_timm(model, folder):
    import torch

    declare_torchvision()
    import timm

    def make(batch):
        made = timm.create_model(model["name"], pretrained=False, **model["arguments"])
        return made, (torch.randn(batch, *made.pretrained_cfg["input_size"]),)

    return make


def from_transformers(model, folder):
    declare_torchvision()
    import transformers

    arguments = dict(model["arguments"])
    tokens, auto = arguments.pop("tokens", TOKENS), arguments.pop("auto", "AutoModel")
    kind, auto = getattr(transformers, model["name"]), getattr(transformers, auto)

    def make(batch):
        config = kind(**arguments)
        if hasattr(config, "use_cache"):
            config.use_cache = False
        made = auto.from_config(config)
        return made, (), transformers_inputs(made, config, batch, tokens)

    return make


def transformers_inputs(module, config, batch, tokens):
    """Keyword arguments of a call: random tokens, or a random picture or sound."""
    import torch

    name = module.main_input_name
    if name in FLOAT_INPUTS:
        inputs = {name: torch.randn(batch, *FLOAT_INPUTS[name](config))}
    else:
        inputs = {name: torch.randint(0, config.vocab_size, (batch, tokens))}
    if "decoder_input_ids" in inspect.signature(module.forward).parameters:
        inputs["decoder_input_ids"] = torch.randint(0, config.vocab_size, (batch, tokens))
    return inputs


def pair(size):
    return size if isinstance(size, (list, tuple)) else (size, size)


def from_pt2(model, folder):
    import torch

    def make(batch):
        program = torch.export.load(file_of(model, folder))
        args, kwargs = program.example_inputs or ((), {})
        return program.module(), args, kwargs

    return make


SOURCES = {
    "zoo": from_file,
    "torchvision": from_torchvision,
    "timm": from_timm,
    "transformers": from_transformers,
    "file": from_file,
    "pt2": from_pt2,
}
