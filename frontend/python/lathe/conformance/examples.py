"""The examples that PyTorch documents torch.export with."""

import re

from lathe.conformance.case import Case


def database():
    from torch._export.db import examples

    return sorted(examples.all_examples().items())


def entries(choice):
    return [{"suite": "examples", "index": i, "name": name, "dtype": "f32"}
            for i, (name, _) in enumerate(database())
            if not choice.pattern or re.search(choice.pattern, name)]


def cases(entry, device):
    _, example = database()[entry["index"]]
    calls = () if example.extra_args is None else ((tuple(example.extra_args), {}),)
    yield Case("", example.model, tuple(example.example_args), dict(example.example_kwargs),
               calls=calls, float64=False)
