"""Whether an answer is eager's: the rule of PyTorch's benchmarks (torch._dynamo.utils.same).

An output passes when it is close to eager's, elementwise; or else when it is as near to the answer
in float64 as eager itself is, by root mean square; or, where there is no answer in float64, when
the cosine between both is at least 0.99. Integers and booleans must be equal; number, shapes and
dtypes of the outputs too.
"""

import functools
import math

import torch
from torch.utils import _pytree as pytree

COSINE = 0.99
TOLERANCES = {"timm": 1e-3, "transformers": 1e-3}  # by source, as PyTorch has them by suite
FLOAT32_TOLERANCE = 1e-4
HALF_TOLERANCE = 1e-3  # at least, for float16 and bfloat16
SMALL = 1000  # elements; a mean over fewer is allowed more
LOOSE = 2e-2


def tolerance_of(source, dtype):
    """The tolerance, absolute and relative, for a model's source and a dtype by name."""
    tolerance = TOLERANCES.get(source, FLOAT32_TOLERANCE)
    return max(tolerance, HALF_TOLERANCE) if dtype in ("float16", "bfloat16") else tolerance


def tensors_of(value):
    """The tensors of a nested result, in order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def compare(answer, eager, exact, tolerance):
    """(accuracy of the results file, why it fails or None).

    answer, eager: nested results. exact: makes eager's in float64, or None when that cannot be
    had; called once, and only when an output is not close.
    """
    outputs, references = tensors_of(answer), tensors_of(eager)
    found = {"max_abs": 0.0, "max_rel": 0.0, "cosine": 1.0, "tolerance": tolerance, "rule": "close"}
    if len(outputs) != len(references):
        return found, f"{len(outputs)} tensors came out, eager gives {len(references)}"
    failure = None
    exact = functools.cache(exact)
    for i, (output, reference) in enumerate(zip(outputs, references)):
        rule, why = compare_tensor(output, reference, lambda: nth(exact(), i), tolerance, found)
        if RULES.index(rule) > RULES.index(found["rule"]):
            found["rule"] = rule
        if why and failure is None:
            failure = f"output {i}: {why}"
    return found, failure


def nth(result, i):
    tensors = [] if result is None else tensors_of(result)
    return wide(tensors[i]) if i < len(tensors) else None


RULES = ("close", "root mean square against float64", "cosine")  # the last that was needed is told


def compare_tensor(output, reference, exact, tolerance, found):
    """(rule, why it fails or None); widens the figures of `found`."""
    if output.dtype != reference.dtype:
        return RULES[0], f"dtype {output.dtype}, eager gives {reference.dtype}"
    if output.shape != reference.shape:
        return RULES[0], f"shape {list(output.shape)}, eager gives {list(reference.shape)}"
    if not (output.is_floating_point() or output.is_complex()):
        different = int((output != reference).sum())
        return RULES[0], f"{different} integers differ from eager's" if different else None
    is_loose = output.dtype == torch.bfloat16 or output.numel() < SMALL or tolerance >= LOOSE
    output, reference = wide(output), wide(reference)
    figures(output, reference, found)
    if torch.allclose(output, reference, rtol=tolerance, atol=tolerance, equal_nan=True):
        return RULES[0], None
    exact = exact()
    if exact is not None and exact.shape == reference.shape:
        ours, eagers = rms(output - exact), rms(reference - exact)
        if math.isfinite(eagers):
            factor = 3 if is_loose else 2
            allowed = factor * eagers + tolerance / 10
            if ours <= allowed:
                return RULES[1], None
            return RULES[1], f"error {ours:.2g} against float64, allowed {allowed:.2g}"
    cosine = cosine_of(output, reference)
    if cosine >= COSINE:
        return RULES[2], None
    return RULES[2], f"cosine with eager's {cosine:.3g}, expected at least {COSINE}"


def wide(tensor):
    """A tensor in float64 on the CPU, complex numbers as pairs."""
    tensor = tensor.detach().cpu()
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).double()


def rms(difference):
    """Root mean square; NaN where there is one."""
    return difference.square().mean().sqrt().item() if difference.numel() else 0.0


def cosine_of(output, reference):
    a, b = output.flatten(), reference.flatten()
    if torch.equal(a, b):
        return 1.0  # zeros too
    return torch.nn.functional.cosine_similarity(a, b, dim=0, eps=1e-30).item()


def figures(output, reference, found):
    """Widens max_abs; max_rel, of the output's largest absolute value; and cosine, the least."""
    if not output.numel():
        return
    error = (output - reference).abs().nan_to_num(math.inf)
    error[output.isnan() & reference.isnan() | (output == reference)] = 0
    largest = error.max().item()
    scale = reference.abs().nan_to_num(0, posinf=0).max().item()
    found["max_abs"] = max(found["max_abs"], largest)
    if largest:
        found["max_rel"] = max(found["max_rel"], largest / scale if scale else math.inf)
    cosine = cosine_of(output, reference)
    if not math.isnan(cosine):
        found["cosine"] = min(found["cosine"], cosine)
