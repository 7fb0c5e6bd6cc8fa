"""PyTorch's operator database: samples of every operator, and inputs that it must refuse."""

import re

import torch

from lathe.conformance.case import Call, Case

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool,
          "c64": torch.complex64}
# Vectors of theirs have either sign: the samples say what PyTorch's own tests compare.
HAVE_EITHER_SIGN = ("linalg.eigh", "linalg.svd", "pca_lowrank", "svd", "svd_lowrank")


def database():
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def entries(choice):
    """Units of work: (suite, operator's number, name, dtype)."""
    found = []
    for i, op in enumerate(database()):
        if choice.pattern and not re.search(choice.pattern, name_of(op)):
            continue
        for dtype in choice.dtypes:
            if DTYPES[dtype] in op.supported_dtypes(choice.device):
                found.append({"suite": "ops", "index": i, "name": name_of(op), "dtype": dtype})
    return found


def error_entries(choice):
    return [{"suite": "errors", "index": i, "name": name_of(op), "dtype": "f32"}
            for i, op in enumerate(database()) if op.error_inputs_func is not None
            and (not choice.pattern or re.search(choice.pattern, name_of(op)))]


def cases(entry, device):
    op, dtype = database()[entry["index"]], DTYPES[entry["dtype"]]
    torch.manual_seed(0)
    bounds = tolerance(op, dtype, device)
    for sample in op.sample_inputs(device, dtype):
        call = Call(op.op, (sample.input, *sample.args), sample.kwargs)
        process = sample.output_process_fn_grad if op.name in HAVE_EITHER_SIGN else None
        yield Case("", call, call.tensors, bounds=bounds, process=process)


def error_cases(entry, device):
    op = database()[entry["index"]]
    torch.manual_seed(0)
    for error in op.error_inputs(device):
        sample = error.sample_input
        call = Call(op.op, (sample.input, *sample.args), sample.kwargs)
        yield Case("", call, call.tensors, kind="error")


def tolerance(op, dtype, device):
    """The widest bounds that PyTorch's own tests of the operator use; None: assert_close's."""
    from torch.testing._internal.common_device_type import toleranceOverride

    bounds = {}
    for decorator in op.decorators:
        if getattr(decorator, "device_type", None) not in (None, device):
            continue
        for part in getattr(decorator, "decorators", [decorator]):
            if isinstance(part, toleranceOverride) and dtype in part.d:
                tol = part.d[dtype]
                bounds["atol"] = max(tol.atol, bounds.get("atol", 1e-5))
                bounds["rtol"] = max(tol.rtol, bounds.get("rtol", 1.3e-6))
    return bounds or None
