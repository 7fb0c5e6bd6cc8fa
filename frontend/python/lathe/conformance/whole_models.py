"""Models of transformers, timm and torchvision, made from small configurations."""

import json
import pathlib
import re

import torch

from lathe.conformance import verdict
from lathe.conformance.case import Case
from lathe.sweep import models

HERE = pathlib.Path(__file__).parent


def entries(choice):
    names = json.loads((HERE / "models.json").read_text())
    return [{"suite": "models", "index": i, "name": name, "dtype": "f32"}
            for i, name in enumerate(names)
            if not choice.pattern or re.search(choice.pattern, name)]


def cases(entry, device):
    parts = models.split(entry["name"])
    torch.manual_seed(0)
    make = models.open_source(parts, ".")
    module, args, kwargs = models.place(make(2), parts["source"], "float32", device)
    bound = verdict.MODEL_TOLERANCE
    yield Case("", module, tuple(args), kwargs, bounds={"rtol": bound, "atol": bound},
               float64=False, is_timed=True)
