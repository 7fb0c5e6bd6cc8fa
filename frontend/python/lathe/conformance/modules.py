"""PyTorch's module database: every nn.Module with sample arguments."""

import re

import torch

from lathe.conformance.case import Case
from lathe.conformance.opinfo import DTYPES


def database():
    from torch.testing._internal.common_modules import module_db

    return module_db


def entries(choice):
    found = []
    for i, info in enumerate(database()):
        if choice.pattern and not re.search(choice.pattern, info.name):
            continue
        for dtype in choice.dtypes:
            if DTYPES[dtype] in info.supported_dtypes(choice.device):
                found.append({"suite": "modules", "index": i, "name": info.name, "dtype": dtype})
    return found


def cases(entry, device):
    info, dtype = database()[entry["index"]], DTYPES[entry["dtype"]]
    torch.manual_seed(0)
    samples = info.module_inputs_func(info, device=device, dtype=dtype, requires_grad=False,
                                      training=False)
    for sample in samples:
        made = sample.constructor_input
        module = info.module_cls(*made.args, **made.kwargs).to(device, dtype).eval()
        call = sample.forward_input
        yield Case("", module, tuple(call.args), dict(call.kwargs), float64=False)
