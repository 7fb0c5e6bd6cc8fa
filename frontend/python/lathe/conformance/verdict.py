"""Whether an answer is eager's."""

import torch
from torch.utils import _pytree as pytree

RMSE_FACTOR = 3  # torch._dynamo.utils.same's, for errors against float64
MODEL_TOLERANCE = 1e-3


def tensors_of(value):
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def disagreement(found, wanted, bounds=None, exact=lambda: None):
    """None, or how nested results differ. bounds: rtol and atol for floats, PyTorch's own when
    None. exact: makes the answer in float64, or None; an answer that is about as near to it as
    eager's agrees too.
    """
    found, wanted = pytree.tree_leaves(found), pytree.tree_leaves(wanted)
    if len(found) != len(wanted):
        return f"{len(found)} results, eager gives {len(wanted)}"
    exacts = None
    for i, (f, w) in enumerate(zip(found, wanted)):
        if not isinstance(w, torch.Tensor):
            if f != w and not (f != f and w != w):
                return f"result {i} is {f!r}, eager gives {w!r}"
            continue
        words = tensor_difference(f, w, bounds)
        if words is None:
            continue
        if exacts is None:
            exacts = tensors_or_none(exact)
        if not is_as_exact(f, w, exacts[i] if i < len(exacts) else None):
            return f"result {i}: {words}"
    return None


def tensors_or_none(exact):
    try:
        return pytree.tree_leaves(exact())
    except Exception:  # an operator without a kernel for float64
        return []


def tensor_difference(found, wanted, bounds):
    if not isinstance(found, torch.Tensor):
        return f"no tensor but {type(found).__name__}"
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return (f"{found.dtype} {list(found.shape)}, eager gives {wanted.dtype} "
                f"{list(wanted.shape)}")
    is_float = wanted.is_floating_point() or wanted.is_complex()
    try:
        torch.testing.assert_close(found.cpu(), wanted.cpu(), equal_nan=True, check_stride=False,
                                   **(bounds if bounds and is_float else {}))
    except (AssertionError, RuntimeError) as error:  # the latter of dtypes it cannot subtract
        return " ".join(str(error).split())[:300]
    return None


def is_as_exact(found, wanted, exact):
    if not isinstance(exact, torch.Tensor) or not isinstance(found, torch.Tensor):
        return False
    if not wanted.is_floating_point() or not found.dtype == wanted.dtype:
        return False
    if found.shape != wanted.shape or exact.shape != wanted.shape:
        return False
    if not torch.equal(specials(found), specials(wanted)):
        return False
    return rmse(found, exact) <= RMSE_FACTOR * rmse(wanted, exact)


def specials(x):
    """Infinities and NaN where they are, zeros elsewhere."""
    x = x.detach().cpu().double()
    return torch.where(x.isfinite(), torch.zeros_like(x), x.nan_to_num(2, 1, -1))


def rmse(found, exact):
    error = found.detach().cpu().double() - exact.detach().cpu().double()
    return float(torch.where(error.isfinite(), error, 0).square().mean().sqrt())
