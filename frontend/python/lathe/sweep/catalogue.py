"""Which names there are: of models, arguments and options, so that wrong ones are found early.

    python -m lathe.sweep.catalogue QUERIES

The packages that know are large and may fail to import, so this runs in a process of its own. It
prints, for each query [kind, name], a list of valid names, or a sentence as {"error": ...}.
"""

import importlib
import importlib.util
import inspect
import json
import sys

from lathe.sweep import models


def torchvision_names(_):
    models.declare_torchvision()
    return importlib.import_module("torchvision").models.list_models()


def timm_names(_):
    models.declare_torchvision()
    return importlib.import_module("timm").list_models()


def config_names(_):
    models.declare_torchvision()
    transformers = importlib.import_module("transformers")
    return [name for name in dir(transformers) if name.endswith("Config")]


def config_fields(name):
    transformers = importlib.import_module("transformers")
    if not hasattr(transformers, name):
        return []  # config_names tells
    fields = set()
    for kind in getattr(transformers, name).__mro__:
        if kind is not object and "__init__" in vars(kind):
            fields.update(inspect.signature(kind.__init__).parameters)
    return sorted(fields - {"self", "kwargs"} | {"tokens", "auto"})


def option_names(backend):
    """Of torch.compile's options; None where a backend does not tell."""
    if backend == "inductor":
        return importlib.import_module("torch._inductor").list_options()
    try:
        names = getattr(importlib.import_module(f"{backend}.backend"), "OPTIONS", None)
    except ImportError:
        return None
    return None if names is None else list(names)


QUERIES = {
    "torchvision": torchvision_names,
    "timm": timm_names,
    "transformers": config_names,
    "config": config_fields,
    "options": option_names,
}
PACKAGES = {"config": "transformers", "options": "torch"}


def answer(kind, name):
    package = PACKAGES.get(kind, kind)
    if importlib.util.find_spec(package) is None:
        return {"error": f"the package {package} is not installed: pip install {package}"}
    try:
        return QUERIES[kind](name)
    except Exception as error:  # whatever a package raises when it is imported
        return {"error": f"{package} does not work here: {type(error).__name__}: {error}"}


def main():
    print(json.dumps([answer(*query) for query in json.loads(sys.argv[1])]))


if __name__ == "__main__":
    main()
