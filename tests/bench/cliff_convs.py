"""The grid of cliffs.py: convolutions, alone and in the blocks of known models.

A case is (name, make, args). The name begins with its family. `make` builds the module, so that
only the case that runs holds weights; weights are parameters where models have them as parameters.
Each of `args` is a shape of random normals, or a function that returns a tensor.
"""

import functools
import itertools

import torch
import torch.nn as nn

CONVS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d}
ACTS = {"relu": nn.ReLU, "silu": nn.SiLU, "hardswish": nn.Hardswish, "gelu": nn.GELU}
SIDES = {8: 112, 16: 112, 24: 56, 48: 56, 64: 56, 96: 56, 100: 28, 128: 28, 240: 14, 256: 14,
         1024: 7}


class Call(nn.Module):
    """A function, or a module, of all arguments."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Of(nn.Module):
    """A function of the arguments and then of modules."""

    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.modules_ = function, nn.ModuleList(modules)

    def forward(self, *args):
        return self.function(*args, *self.modules_)


def op(function, **keywords):
    return lambda: Call(functools.partial(function, **keywords))


def layers(*makers):
    return lambda: nn.Sequential(*(make() for make in makers))


def to(make, dtype):
    return lambda: make().to(dtype)


def ints(high, *shape, dtype=torch.int64):
    return lambda: torch.randint(high, shape, dtype=dtype)


def mask(*shape):
    """Booleans, three of four true, and the first of each row true: no row is all masked."""
    return lambda: (torch.rand(shape) < 0.75).index_fill(-1, torch.tensor([0]), True)


def cast(dtype, *shape):
    return lambda: torch.randn(shape).to(dtype)


def positive(*shape):
    return lambda: torch.rand(shape) + 0.5


def conv(dims, c, out, k, side, *, g=1, s=1, d=1, b=1, act=None, pad=None):
    pad = d * (k - 1) // 2 if pad is None else pad
    make = functools.partial(CONVS[dims], c, out, k, s, pad, d, g)
    channels = f"c{c}" if c == out else f"c{c}-{out}"
    name = f"conv{dims}d {channels} g{g} k{k} s{s}{f' d{d}' if d > 1 else ''} "
    name += f"{'x'.join([str(side)] * dims)} b{b}{f' {act}' if act else ''}"
    return name, layers(make, ACTS[act]) if act else make, [(b, c, *[side] * dims)]


def convs():
    for c, out, k, s in ((3, 64, 7, 2), (3, 16, 3, 2), (3, 96, 4, 4), (3, 384, 16, 16)):
        yield conv(2, c, out, k, 224, s=s, pad=0 if k == s else k // 2)
    for c, side in SIDES.items():
        for k, s in itertools.product((1, 3), (1, 2)):
            yield conv(2, c, c, k, side, s=s)
        for k, s in itertools.product((3, 5, 7), (1, 2)):
            yield conv(2, c, c, k, side, s=s, g=c)
        yield conv(2, c, c, 3, side, g=c, d=2)
        yield conv(2, c, 2 * c, 3, side, g=c)
        if c < 1024:
            yield conv(2, c, c, 3, side, d=2)
        for g in (2, 8, 16, 24):
            if c % g == 0 and c > g:
                yield conv(2, c, c, 3, side, g=g)
        if c % 8 == 0 and c > 8:
            yield conv(2, c, c, 1, side, g=8)
    for c, width, side in ((104, 8, 28), (208, 8, 14), (440, 8, 7), (128, 4, 56), (256, 8, 28)):
        yield conv(2, c, c, 3, side, g=c // width)
        yield conv(2, c, c, 3, side * 2, g=c // width, s=2)
    for c, k, g in itertools.product((24, 100, 256), (1, 3, 5), (1, 2, 0)):
        if not (k == 5 and g == 1 and c == 256):
            yield conv(2, c, c, k, SIDES[c] // 2, g=g or c, b=4)
    for c, act, k, g in itertools.product((48, 96), ACTS, (1, 3), (1, 0)):
        if k == 3 or g == 1:
            yield conv(2, c, c, k, 28, g=g or c, act=act)
    for k, c in itertools.product((5, 7), (16, 64)):
        yield conv(2, c, c, k, 28)
    for c, out in ((64, 256), (256, 64), (1024, 24), (96, 10), (24, 1000)):
        yield conv(2, c, out, 1, 14)
    for c, side in ((3, 1000), (64, 1000), (100, 100), (256, 128)):
        for k, s, d, g in ((1, 1, 1, 1), (3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 2, 1), (7, 1, 1, 0)):
            yield conv(1, c, c, k, side, s=s, d=d, g=g or c)
    for c, k, s, g in itertools.product((16, 24), (1, 3), (1, 2), (1, 0)):
        yield conv(3, c, c, k, 14, s=s, g=g or c)
    yield conv(3, 3, 16, 3, 28)


def transposed_convs():
    sizes = ((2, 64, 32, 28), (2, 100, 100, 14), (2, 256, 128, 14), (1, 64, 32, 500))
    for dims, c, out, side in sizes:
        for k, g in ((2, 1), (3, 1), (4, 1), (4, 0)):
            wide = c if g == 0 else out
            make = functools.partial(TRANSPOSED[dims], c, wide, k, 2, (k - 1) // 2,
                                     output_padding=k % 2, groups=g or c)
            name = f"transposed{dims}d c{c}-{wide} g{g or c} k{k} s2 {'x'.join([str(side)] * dims)}"
            yield name, make, [(1, c, *[side] * dims)]


def excite(c):
    """The squeeze and excitation of EfficientNet and RegNet."""
    gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c // 4, 1), nn.ReLU(),
                         nn.Conv2d(c // 4, c, 1), nn.Sigmoid())
    return Of(lambda x, gate: x * gate(x), gate)


def inverted(c, wide, k, s, excited):
    """MobileNet's block: what reaches the depthwise convolution comes from another."""
    return nn.Sequential(
        nn.Conv2d(c, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.Hardswish(),
        nn.Conv2d(wide, wide, k, s, k // 2, groups=wide, bias=False), nn.BatchNorm2d(wide),
        nn.Hardswish(), *([excite(wide)] if excited else []),
        nn.Conv2d(wide, c, 1, bias=False), nn.BatchNorm2d(c))


def convnext(c):
    deep = nn.Conv2d(c, c, 7, padding=3, groups=c)
    rest = nn.Sequential(nn.LayerNorm(c), nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))
    return Of(lambda x, deep, rest: x + rest(deep(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2),
              deep, rest)


def channels_last(c, k):
    """A depthwise convolution of what arrives with channels last."""
    deep = nn.Conv2d(c, c, k, padding=k // 2, groups=c)
    return Of(lambda x, deep: deep(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1), deep)


def shuffle(x, groups=2):
    b, c, h, w = x.shape
    return x.view(b, groups, c // groups, h, w).transpose(1, 2).reshape(b, c, h, w)


def shuffle_unit(c):
    half = c // 2
    branch = nn.Sequential(
        nn.Conv2d(half, half, 1), nn.ReLU(), nn.Conv2d(half, half, 3, 1, 1, groups=half),
        nn.Conv2d(half, half, 1), nn.ReLU())
    return Of(lambda x, f: shuffle(torch.cat((x.chunk(2, 1)[0], f(x.chunk(2, 1)[1])), 1)), branch)


def dense_block(c, growth, count):
    """DenseNet's: every layer reads the concatenation of all before it."""

    def run(x, *modules):
        parts = [x]
        for layer in modules:
            parts.append(layer(torch.cat(parts, 1)))
        return torch.cat(parts, 1)

    return Of(run, *(nn.Sequential(nn.BatchNorm2d(c + i * growth), nn.ReLU(),
                                   nn.Conv2d(c + i * growth, growth, 3, 1, 1))
                     for i in range(count)))


def pyramid(c, rates):
    """DeepLab's: dilated branches, one joined result."""
    branches = [nn.Conv2d(c, 64, 3, 1, r, r) for r in rates]
    return Of(lambda x, join, *bs: join(torch.cat([b(x).relu() for b in bs], 1)),
              nn.Conv2d(64 * len(rates), 64, 1), *branches)


def blocks():
    P = functools.partial
    for c, side in ((16, 56), (24, 56), (48, 28), (96, 14), (100, 14)):
        for k, s, e in itertools.product((3, 5, 7), (1, 2), (False, True)):
            name = f"block inverted c{c} k{k} s{s}{' se' if e else ''} {side}x{side}"
            yield name, P(inverted, c, 3 * c, k, s, e), [(1, c, side, side)]
    for c, side in ((96, 28), (192, 14), (768, 7)):
        yield f"block convnext c{c} {side}x{side}", P(convnext, c), [(1, c, side, side)]
        for k in (3, 7):
            name = f"block channels last depthwise c{c} k{k} {side}x{side}"
            yield name, P(channels_last, c, k), [(1, side, side, c)]
    for c, side in ((116, 28), (232, 14), (464, 7)):
        yield f"block shufflenet c{c} {side}x{side}", P(shuffle_unit, c), [(1, c, side, side)]
    for c, count in ((64, 2), (64, 4), (64, 12)):
        yield f"block dense cat of {count} 28x28", P(dense_block, c, 32, count), [(1, c, 28, 28)]
    yield "block pyramid of 3 28x28", P(pyramid, 96, (1, 6, 12)), [(1, 96, 28, 28)]
    for c, side in ((64, 28), (104, 28), (240, 14)):
        yield f"block excite c{c} {side}x{side}", P(excite, c), [(1, c, side, side)]


def cases():
    return [*convs(), *transposed_convs(), *blocks()]
