"""What operators' samples do not show: sizes that change between calls, writes to arguments,
results that are views of arguments, strides, empty and rank-0 tensors, nested arguments.
"""

import re

import torch

from lathe.conformance.case import Case

randn = torch.randn


class Body(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def grown(shapes, sizes):
    """Arguments of the shapes with -1 replaced by each of the sizes."""
    return [(tuple(randn([n if s == -1 else s for s in shape]) for shape in shapes), {})
            for n in sizes]


def sized(function, *shapes, sizes=(8, 5, 13, 2)):
    first, *rest = grown(shapes, sizes)
    return Case("", Body(function), first[0], calls=tuple(rest))


def once(function, *args):
    return Case("", Body(function), args)


def writes_rows(x):
    x[1:3] = x[0:2].clone()
    return x.sum()


def writes_view(x):
    x.t().mul_(2)
    return x + 1


def counts_up(x, n):
    n.add_(1)
    return x * n


TABLE = {
    "sizes.elementwise": lambda: sized(lambda x: (x * 2).relu(), (-1, 3)),
    "sizes.linear": lambda: sized(lambda x, w: x @ w, (-1, 16), (16, 8)),
    "sizes.attention": lambda: sized(
        torch.nn.functional.scaled_dot_product_attention, (2, 4, -1, 8), (2, 4, -1, 8),
        (2, 4, -1, 8)),
    "sizes.softmax": lambda: sized(lambda x: x.softmax(-1), (3, -1)),
    "sizes.norm": lambda: sized(
        lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]), (4, -1)),
    "sizes.conv": lambda: sized(
        lambda x, w: torch.nn.functional.conv2d(x, w, padding=1), (1, 3, -1, -1), (4, 3, 3, 3)),
    "sizes.pool": lambda: sized(
        lambda x: torch.nn.functional.avg_pool2d(x, 2), (1, 3, -1, -1), sizes=(8, 10, 6, 14)),
    "sizes.cat": lambda: sized(lambda x, y: torch.cat([x, y, x]), (-1, 4), (3, 4)),
    "sizes.reshape": lambda: sized(lambda x: x.reshape(-1, 2).sum(0), (-1, 4)),
    "sizes.split": lambda: sized(lambda x: x[: x.shape[0] // 2] * x.shape[0], (-1, 4)),
    "sizes.one": lambda: sized(lambda x: x.cumsum(0), (-1, 4), sizes=(4, 1, 7)),
    "writes.add_": lambda: once(lambda x: x.add_(1), randn(3, 4)),
    "writes.rows": lambda: once(writes_rows, randn(5, 4)),
    "writes.view": lambda: once(writes_view, randn(3, 4)),
    "writes.counter": lambda: once(counts_up, randn(3), torch.tensor(4.0)),
    "writes.copy_": lambda: once(lambda x, y: x.copy_(y), randn(3, 4), randn(4)),
    "writes.index_put_": lambda: once(
        lambda x, i, v: x.index_put_((i,), v, accumulate=True), randn(6, 2),
        torch.tensor([0, 3, 0]), randn(3, 2)),
    "aliases.view": lambda: once(lambda x: x.view(12), randn(3, 4)),
    "aliases.argument": lambda: once(lambda x: (x, x + 1), randn(3, 4)),
    "aliases.twice": lambda: once(lambda x: [x.sin()] * 2, randn(3, 4)),
    "aliases.slice": lambda: once(lambda x: x[1:, ::2], randn(3, 4)),
    "strides.transposed": lambda: once(lambda x: x.exp().sum(0), randn(4, 3).t()),
    "strides.expanded": lambda: once(lambda x: x * 2, randn(1, 4).expand(3, 4)),
    "strides.sliced": lambda: once(lambda x: x.amax(1), randn(6, 8)[::2, 1::3]),
    "strides.channels_last": lambda: once(
        lambda x: torch.nn.functional.max_pool2d(x, 2),
        randn(2, 3, 8, 8).to(memory_format=torch.channels_last)),
    "empty.sum": lambda: once(lambda x: x.sum(0), randn(0, 4)),
    "empty.matmul": lambda: once(lambda x, y: x @ y, randn(3, 0), randn(0, 4)),
    "empty.cat": lambda: once(lambda x, y: torch.cat([x, y]), randn(0, 4), randn(2, 4)),
    "rank0.arithmetic": lambda: once(lambda x, y: x * y + 1, torch.tensor(2.0), randn(3)),
    "promotion.mixed": lambda: once(
        lambda x, y, z: (x + y, y * z, x > z), torch.arange(3), randn(3).half(), randn(3)),
    "autocast.matmul": lambda: once(autocast(torch.matmul), randn(4, 8), randn(8, 4)),
    "autocast.conv": lambda: once(
        autocast(torch.nn.functional.conv2d), randn(1, 3, 8, 8), randn(4, 3, 3, 3)),
    "autocast.network": lambda: once(
        autocast(autocast_network), randn(4, 8), randn(8, 8), randn(8), randn(4, 8)),
    "float8.cast": lambda: once(lambda x: in_eight_bits(x).float(), randn(3, 5)),
    "float8.moves": lambda: once(
        lambda x: torch.cat([in_eight_bits(x).t(), in_eight_bits(x[:, :3])], 1).float(),
        randn(3, 3)),
    "float8.weights": lambda: once(
        lambda x, w: x @ (w.to(x.dtype) * 0.1).t(), randn(4, 8), in_eight_bits(randn(6, 8))),
    "float8.products": lambda: once(
        lambda x, w: torch._scaled_mm(
            x, w.t(), torch.tensor(0.5), torch.tensor(2.0), out_dtype=torch.bfloat16),
        in_eight_bits(randn(16, 32)), in_eight_bits(randn(48, 32))),
    "control.cond": lambda: once(
        lambda p, x: torch.cond(p, lambda x: x + 1, lambda x: x - 1, (x,)), torch.tensor(True),
        randn(3)),
    "control.item": lambda: once(by_a_number_of_data, randn(4), torch.tensor([3, 1, 2])),
    "arguments.nested": lambda: once(
        lambda d: {"sum": d["a"] + d["b"][0], "rest": d["b"][1:]},
        {"a": randn(3), "b": [randn(3), randn(3)]}),
    "arguments.number": lambda: once(lambda x, n: x * n, randn(3), 3),
    "arguments.none": lambda: once(lambda x, y: x if y is None else x + y, randn(3), None),
    "results.none": lambda: once(lambda x: (x + 1, None, 3), randn(3)),
}


def autocast(function):
    def call(*args):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return function(*args)

    return call


def autocast_network(x, w, b, target):
    y = torch.nn.functional.linear(x, w, b).softmax(-1)
    with torch.autocast("cpu", enabled=False):
        z = y.float() @ w
    return torch.cat([y, z.bfloat16()], 1), torch.nn.functional.mse_loss(y, target), y @ w


def in_eight_bits(x):
    return x.to(torch.float8_e4m3fn)


def by_a_number_of_data(x, n):
    count = n.max().item()
    return x * (count + 2) + 1


def entries(choice):
    return [{"suite": "behaviour", "index": i, "name": name, "dtype": "f32"}
            for i, name in enumerate(TABLE)
            if not choice.pattern or re.search(choice.pattern, name)]


def cases(entry, device):
    torch.manual_seed(0)
    case = TABLE[entry["name"]]()
    move = torch.utils._pytree.tree_map_only
    case.args, case.calls = move(torch.Tensor, lambda t: t.to(device), (case.args, case.calls))
    yield case
