"""What the extension is told of a compiled model: how calls of flat arguments go (call/plan.h)."""

import functools

from lathe import _pytree as pytree


def plan(compiled, at, leaves, out_spec):
    """Tells it how a call at some sizes goes (Sizes of _compiled.py); a leaf is an input by its
    number, or None and the value that it must have.
    """
    inputs = [expected(compiled, at, number, constant) for number, constant in leaves]
    outputs = [
        (slot.dtype, slot.shape, slot.strides, (slot.shape, slot.numpy_dtype))
        for slot in at.outputs
    ]
    results = at.results if out_spec else [(i, None) for i in range(len(outputs))]
    numbered = [(-1 if i is None else i, value) for i, value in results]
    compiled.handle.plan(
        at.sizes, tuple(inputs), tuple(outputs), tuple(numbered), build(len(results), out_spec)
    )


def expected(compiled, at, number, constant):
    if number is None:
        return -1, 0, (), False, constant
    slot, info = at.inputs[number], compiled.info
    is_mutated = info["inputs"][number]["name"] in info["mutations"]
    return number, slot.dtype, slot.shape, is_mutated, None


def build(count, out_spec):
    """What makes the result of a tuple of its leaves; None: the only one is the result."""
    if out_spec is None:
        return None if count == 1 else tuple
    if out_spec.kind is None:
        return None
    if out_spec.kind == "tuple" and out_spec.is_flat:
        return tuple
    return functools.partial(nest, out_spec)


def nest(out_spec, leaves):
    return pytree.unflatten(iter(leaves), out_spec)
