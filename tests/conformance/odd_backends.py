"""Backends of torch.compile that fail in every way there is."""

import os
import time

from torch._dynamo import register_backend


@register_backend
def odd_right(module, inputs):
    return module.forward


@register_backend
def odd_wrong(module, inputs):
    return lambda *args: [r + 1 for r in module(*args)]


@register_backend
def odd_refuses(module, inputs):
    raise NotImplementedError("no op for 'add'")


@register_backend
def odd_raises(module, inputs):
    def run(*args):
        raise RuntimeError("only when it runs")

    return run


@register_backend
def odd_crashes(module, inputs):
    os.abort()


@register_backend
def odd_hangs(module, inputs):
    time.sleep(600)
