"""The suites by name: what each has, and its cases."""

import dataclasses

from lathe.conformance import (behaviour, examples, modules, opinfo, random_graphs,
                               whole_models, zoo_graphs)


@dataclasses.dataclass(frozen=True)
class Choice:
    """What of a suite is asked for."""

    dtypes: tuple = ("f32",)
    pattern: str = ""
    device: str = "cpu"
    seed: int = 0
    graphs: int = 300


@dataclasses.dataclass(frozen=True)
class Suite:
    summary: str
    entries: object  # of a Choice: dicts of suite, index, name, dtype; what one worker does at once
    cases: object  # of an entry and a device: Cases


SUITES = {
    "ops": Suite("every sample of PyTorch's operator database", opinfo.entries, opinfo.cases),
    "errors": Suite("inputs that operators refuse", opinfo.error_entries, opinfo.error_cases),
    "modules": Suite("PyTorch's module database", modules.entries, modules.cases),
    "examples": Suite("PyTorch's examples of torch.export", examples.entries, examples.cases),
    "behaviour": Suite("sizes that change, mutation, aliases, strides, nested arguments",
                       behaviour.entries, behaviour.cases),
    "models": Suite("models of transformers, timm and torchvision, small and random",
                    whole_models.entries, whole_models.cases),
    "zoo": Suite("the graphs of tests/zoo, models of full size", zoo_graphs.entries,
                 zoo_graphs.cases),
    "graphs": Suite("random graphs by NNSmith, where it is installed",
                    random_graphs.entries, random_graphs.cases),
}
# Of which there are many, or which take long.
ASKED_FOR = ("graphs", "zoo")
