"""The grid of cliffs.py: what has few weights or none, and `cases()` for the whole grid."""

import functools
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

import cliff_convs
import cliff_layers
from cliff_convs import ACTS, Of, cast, ints, layers, mask, op, positive, shuffle

LENGTHS = (7, 10, 64, 96, 100, 192, 384, 768, 1000, 4096)


def rms(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def norms():
    P = functools.partial
    for n in LENGTHS:
        rows = max(16, 2**17 // n)
        yield f"layer_norm {rows}x{n}", P(nn.LayerNorm, n), [(rows, n)]
        yield f"rms_norm {rows}x{n}", P(nn.RMSNorm, n), [(rows, n)]
        yield f"rms_norm by ops {rows}x{n}", op(rms), [(rows, n), (n,)]
        yield f"softmax last {rows}x{n}", op(torch.softmax, dim=-1), [(rows, n)]
        yield f"log_softmax last {rows}x{n}", op(F.log_softmax, dim=-1), [(rows, n)]
    for shape in ((8, 64, 784), (1, 21, 112, 112), (16, 1000, 10), (1000, 7, 13)):
        text = "x".join(map(str, shape))
        yield f"softmax dim 1 {text}", op(torch.softmax, dim=1), [shape]
        yield f"log_softmax dim 1 {text}", op(F.log_softmax, dim=1), [shape]
    for c, side in ((96, 56), (100, 28), (768, 7)):
        a = (1, c, side, side)
        norm = P(nn.LayerNorm, c)
        make = lambda norm=norm: Of(  # noqa: E731
            lambda x, norm: norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), norm())
        yield f"layer_norm of channels c{c} {side}x{side}", make, [a]
        yield f"batch_norm c{c} {side}x{side}", P(nn.BatchNorm2d, c), [a]
        yield f"group_norm one group c{c} {side}x{side}", P(nn.GroupNorm, 1, c), [a]
        yield f"group_norm groups c{c} {side}x{side}", P(nn.GroupNorm, c // 4, c), [a]
        after = layers(P(nn.Conv2d, c, c, 1), P(nn.GroupNorm, 4, c), nn.SiLU)
        yield f"group_norm after conv c{c} {side}x{side}", after, [a]
    yield "batch_norm 1d c100", P(nn.BatchNorm1d, 100), [(1000, 100)]


def reductions():
    functions = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "var": torch.var,
                 "argmax": torch.argmax, "logsumexp": torch.logsumexp}
    places = (((197, 768), (0,), (1,)), ((16, 100, 1000), (0,), (1,), (2,), (0, 2), (0, 1, 2)),
              ((1, 64, 56, 56), (2, 3), (1,)), ((333, 77, 9), (0,), (1,), (2,)))
    for (shape, *dims), (name, f) in itertools.product(places, functions.items()):
        for dim in dims:
            if name == "argmax" and len(dim) > 1:
                continue
            where = ",".join(map(str, dim))
            arguments = {"dim": dim[0] if name == "argmax" else dim}
            yield f"reduce {name} {'x'.join(map(str, shape))} dim {where}", op(f, **arguments), \
                [shape]
    big = (100, 1000)
    for name in ("sum", "mean", "std", "max", "min", "argmax", "argmin", "prod", "norm"):
        yield f"reduce {name} all 100x1000", op(getattr(torch, name)), [positive(*big)]
    for name in ("any", "all", "sum"):
        yield f"reduce {name} bool last 100x1000", op(getattr(torch, name), dim=-1), [mask(*big)]
    yield "reduce sum i64 last 100x1000", op(torch.sum, dim=-1), [ints(9, *big)]
    yield "reduce max values last 100x1000", op(lambda x: tuple(x.max(-1))), [big]
    yield "reduce norm last 100x1000", op(lambda x: F.normalize(x, dim=-1)), [big]


def pools():
    for c, side in ((3, 112), (64, 56), (96, 28), (1000, 7)):
        kinds = {"max 3x3 s2": (F.max_pool2d, (3, 2, 1)), "max 2x2 s2": (F.max_pool2d, (2, 2)),
                 "max 5x5 s1": (F.max_pool2d, (5, 1, 2)), "avg 2x2 s2": (F.avg_pool2d, (2, 2)),
                 "avg 3x3 s1": (F.avg_pool2d, (3, 1, 1)),
                 "adaptive 1": (F.adaptive_avg_pool2d, (1,)),
                 "adaptive 7": (F.adaptive_avg_pool2d, (7,))}
        for name, (f, arguments) in kinds.items():
            pool = lambda x, f=f, arguments=arguments: f(x, *arguments)  # noqa: E731
            yield f"pool {name} c{c} {side}x{side}", op(pool), [(1, c, side, side)]
            if c == 64:
                after = layers(functools.partial(nn.Conv2d, c, c, 1), op(pool))
                yield f"pool {name} after conv c{c} {side}x{side}", after, [(1, c, side, side)]
    yield "pool max1d 3 s2 c64", op(lambda x: F.max_pool1d(x, 3, 2, 1)), [(1, 64, 1000)]
    yield "pool avg1d 2 c64", op(lambda x: F.avg_pool1d(x, 2)), [(1, 64, 1000)]
    yield "pool avg 7x7 s7 c3 b4", op(lambda x: F.avg_pool2d(x, 7)), [(4, 3, 224, 224)]


def windows(x, size=7):
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)


def unwindows(x, size=7, side=56):
    n = side // size
    return x.view(-1, n, n, size, size, x.shape[-1]).permute(0, 1, 3, 2, 4, 5).reshape(
        -1, side, side, x.shape[-1])


def movement():
    image, rows = (1, 64, 56, 56), (197, 768)
    table = {
        "transpose 1024x1024": (lambda x: x.t().contiguous(), (1024, 1024)),
        "transpose 197x768": (lambda x: x.t().contiguous(), rows),
        "transpose 100x1001": (lambda x: x.t().contiguous(), (100, 1001)),
        "to channels last": (lambda x: x.permute(0, 2, 3, 1).contiguous(), image),
        "to channels last of 3": (lambda x: x.permute(0, 2, 3, 1).contiguous(), (1, 3, 224, 224)),
        "from channels last": (lambda x: x.permute(0, 3, 1, 2).contiguous(), (1, 56, 56, 64)),
        "heads": (lambda x: x.view(197, 12, 64).transpose(0, 1).contiguous(), rows),
        "unheads": (lambda x: x.transpose(0, 1).reshape(197, 768), (12, 197, 64)),
        "reverse dims": (lambda x: x.permute(3, 2, 1, 0).contiguous(), (8, 20, 30, 40)),
        "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), image),
        "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), image),
        "windows": (windows, (1, 56, 56, 96)),
        "unwindows": (unwindows, (64, 49, 96)),
        "shifted windows": (lambda x: windows(x.roll((-3, -3), (1, 2))), (1, 56, 56, 96)),
        "channel shuffle": (shuffle, image),
        "slice with step rows": (lambda x: x[::2].contiguous(), (512, 768)),
        "slice with step last": (lambda x: x[:, ::2].contiguous(), (512, 768)),
        "slice image": (lambda x: x[:, :, ::2, ::2].contiguous(), image),
        "patch merging": (lambda x: torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)],
                                              -1), (1, 56, 56, 96)),
        "roll first": (lambda x: x.roll(3, 0), rows),
        "roll last": (lambda x: x.roll(3, 1), rows),
        "flip first": (lambda x: x.flip(0), rows),
        "flip last": (lambda x: x.flip(1), rows),
        "pad constant": (lambda x: F.pad(x, (1, 1, 1, 1)), image),
        "pad reflect": (lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"), image),
        "pad replicate": (lambda x: F.pad(x, (2, 2, 2, 2), mode="replicate"), image),
        "expand first": (lambda x: x.expand(197, 768).contiguous(), (1, 768)),
        "expand last": (lambda x: x.expand(768, 197).contiguous(), (768, 1)),
        "expand middle": (lambda x: x.expand(64, 49, 64).contiguous(), (64, 1, 64)),
        "chunk mul": (lambda x: x.chunk(2, -1)[0] * x.chunk(2, -1)[1], rows),
        "chunk mul dim 1": (lambda x: x.chunk(2, 1)[0] * x.chunk(2, 1)[1], image),
        "glu": (lambda x: F.glu(x, -1), rows),
        "split in three": (lambda x: x.split(256, -1), rows),
        "repeat": (lambda x: x.repeat(1, 2, 3), (16, 49, 64)),
        "repeat_interleave": (lambda x: x.repeat_interleave(4, 1), (1, 3, 197, 64)),
        "unfold": (lambda x: F.unfold(x, 3, padding=1), (1, 16, 56, 56)),
        "overlapping frames": (lambda x: x.unfold(-1, 400, 160), (1, 32000)),
        "tril": (torch.tril, (512, 512)),
        "one row": (lambda x: x[:, 0], (4, 197, 768)),
        "rotary": (lambda x: torch.cat((-x[..., 32:], x[..., :32]), -1), (1, 12, 197, 64)),
        "diff": (lambda x: torch.diff(x, dim=-1), rows),
    }
    for name, (f, shape) in table.items():
        yield f"move {name}", op(f), [shape]
    for count in (2, 4, 12):
        parts = [(1, 32, 28, 28)] * count
        yield f"move cat dim 1 of {count}", op(lambda *xs: torch.cat(xs, 1)), parts
        yield f"move cat last of {count}", op(lambda *xs: torch.cat(xs, -1)), [(197, 64)] * count
        yield f"move stack first of {count}", op(lambda *xs: torch.stack(xs)), parts
        yield f"move stack last of {count}", op(lambda *xs: torch.stack(xs, -1)), parts
    yield "move token before", op(lambda x, t: torch.cat((t, x), 1)), [(1, 196, 768), (1, 1, 768)]


def gathers():
    table = (1000, 768)
    for n in (1, 128):
        make = functools.partial(nn.Embedding, 30522, 768)
        yield f"gather embedding {n} of 30522x768", make, [ints(30522, 1, n)]
    yield "gather embedding 4096 of 100x10", functools.partial(nn.Embedding, 100, 10), \
        [ints(100, 4096)]
    for dim, n in ((0, 1000), (1, 768)):
        yield f"gather index_select dim {dim}", op(lambda x, i, d=dim: x.index_select(d, i)), \
            [table, ints(n, 200)]
        yield f"gather gather dim {dim}", op(lambda x, i, d=dim: x.gather(d, i)), \
            [table, ints(table[dim], 500, 700)]
        yield f"gather scatter dim {dim}", op(lambda x, i, y, d=dim: x.scatter(d, i, y)), \
            [table, lambda d=dim: torch.rand(table).argsort(d)[:500, :500], (500, 500)]
        yield f"gather scatter_add dim {dim}", op(lambda x, i, y, d=dim: x.scatter_add(d, i, y)), \
            [table, ints(table[dim], 500, 700), (500, 700)]
    yield "gather index rows", op(lambda x, i: x[i]), [table, ints(1000, 300)]
    yield "gather index pairs", op(lambda x, i, j: x[i, j]), [table, ints(1000, 5000),
                                                              ints(768, 5000)]
    yield "gather index middle", op(lambda x, i: x[:, i]), [(12, 512, 64), ints(512, 300)]
    yield "gather bias table", op(lambda t, i: t[i.view(-1)].view(49, 49, -1).permute(2, 0, 1)), \
        [(169, 12), ints(169, 49, 49)]
    yield "gather index_put", op(lambda x, i, y: x.index_put((i,), y)), \
        [table, lambda: torch.randperm(1000)[:300], (300, 768)]
    yield "gather index_put accumulate", op(lambda x, i, y: x.index_put((i,), y, True)), \
        [table, ints(1000, 300), (300, 768)]
    yield "gather masked_fill", op(lambda x, m: x.masked_fill(m, 0.0)), [table, mask(*table)]
    yield "gather masked_fill rows", op(lambda x, m: x.masked_fill(m, 0.0)), [table, mask(1000, 1)]
    yield "gather where", op(torch.where), [mask(*table), table, table]
    yield "gather topk", op(lambda x: tuple(x.topk(5))), [table]
    yield "gather sort", op(lambda x: tuple(x.sort(-1))), [table]
    yield "gather one_hot", op(lambda i: F.one_hot(i, 100)), [ints(100, 1000)]


def scans():
    for n in (10, 1000, 4096):
        other = max(1, 2**17 // n)
        yield f"scan cumsum last {other}x{n}", op(torch.cumsum, dim=-1), [(other, n)]
        yield f"scan cumsum first {n}x{other}", op(torch.cumsum, dim=0), [(n, other)]
    yield "scan cumsum i64 last 100x1000", op(torch.cumsum, dim=-1), [ints(9, 100, 1000)]
    yield "scan cumsum middle 12x197x64", op(torch.cumsum, dim=1), [(12, 197, 64)]
    yield "scan cumsum last of one row", op(torch.cumsum, dim=-1), [(1, 100000)]


def elementwise():
    a, ids = (197, 768), ints(100, 197, 768)
    for name in ("gelu", "silu", "hardswish", "mish", "softplus", "elu", "leaky_relu", "relu",
                 "hardsigmoid", "logsigmoid"):
        yield f"map {name}", op(getattr(F, name)), [a]
    yield "map gelu tanh", op(F.gelu, approximate="tanh"), [a]
    for name in ("exp", "tanh", "sigmoid", "erf", "sin", "cos", "expm1", "abs", "neg", "round",
                 "floor", "atan", "sinh", "exp2", "tan"):
        yield f"map {name}", op(getattr(torch, name)), [a]
    for name in ("log", "log1p", "log2", "sqrt", "rsqrt", "reciprocal"):
        yield f"map {name}", op(getattr(torch, name)), [positive(*a)]
    for name in ("add", "sub", "mul", "maximum", "atan2", "lt", "eq"):
        yield f"map {name}", op(getattr(torch, name)), [a, a]
    for name in ("div", "pow", "fmod", "remainder", "floor_divide"):
        yield f"map {name}", op(getattr(torch, name)), [positive(*a), positive(*a)]
    yield "map pow 2", op(lambda x: x**2), [a]
    yield "map pow 3", op(lambda x: x**3), [a]
    yield "map pow 0.5", op(lambda x: x**0.5), [positive(*a)]
    yield "map clamp", op(torch.clamp, min=-1, max=1), [a]
    yield "map lerp", op(torch.lerp, weight=0.3), [a, a]
    yield "map small", op(torch.add), [(1, 64), (1, 64)]
    yield "map odd count", op(torch.mul), [(333, 77, 7), (333, 77, 7)]
    for where, b in (("first", (1, 768)), ("last", (197, 1)), ("all", (1,))):
        yield f"map add broadcast {where}", op(torch.add), [a, b]
    yield "map add broadcast channels", op(torch.add), [(1, 64, 56, 56), (64, 1, 1)]
    yield "map add outer", op(torch.add), [(512, 1), (1, 512)]
    yield "map add transposed", op(lambda x, y: x + y.t()), [(768, 768), (768, 768)]
    for name in ("add", "mul", "maximum", "lt", "bitwise_and"):
        yield f"map i64 {name}", op(getattr(torch, name)), [ids, ids]
    for name in ("floor_divide", "remainder"):
        yield f"map i64 {name} 7", op(getattr(torch, name), other=7), [ids]
    for name in ("logical_and", "logical_xor"):
        yield f"map bool {name}", op(getattr(torch, name)), [mask(*a), mask(*a)]
    yield "map bool not", op(torch.logical_not), [mask(*a)]
    for dtype, short in ((torch.bfloat16, "bf16"), (torch.float16, "f16")):
        half = cast(dtype, *a)
        yield f"{short} cast from f32", op(lambda x, d=dtype: x.to(d)), [a]
        yield f"{short} cast to f32", op(lambda x: x.float()), [half]
        yield f"{short} add", op(torch.add), [half, half]
        yield f"{short} gelu", op(F.gelu), [half]
        yield f"{short} softmax", op(torch.softmax, dim=-1), [half]
        yield f"{short} layer_norm", op(lambda x: F.layer_norm(x, (768,))), [half]
    for dtype in (torch.int64, torch.bool, torch.float64, torch.int32):
        yield f"map cast to {str(dtype)[6:]}", op(lambda x, d=dtype: x.to(d)), [a]
    yield "map cast i64 to f32", op(lambda x: x.float()), [ids]


def upsampling():
    for c, side in ((3, 112), (64, 28), (256, 14)):
        for mode in ("nearest", "bilinear", "bicubic"):
            f = functools.partial(F.interpolate, scale_factor=2, mode=mode)
            yield f"upsample {mode} c{c} {side}x{side}", op(f), [(1, c, side, side)]
        yield f"upsample bilinear corners c{c} {side}x{side}", op(
            F.interpolate, size=(50, 61), mode="bilinear", align_corners=True), [(1, c, side, side)]
    after = layers(functools.partial(nn.Conv2d, 64, 64, 1), op(F.interpolate, scale_factor=2),
                   functools.partial(nn.Conv2d, 64, 64, 3, 1, 1), ACTS["relu"])
    yield "upsample nearest between convs c64 14x14", after, [(1, 64, 14, 14)]


def cases():
    """All of them; no name twice."""
    parts = (norms, reductions, pools, movement, gathers, scans, elementwise, upsampling)
    light = [case for part in parts for case in part()]
    grid = [*cliff_convs.cases(), *cliff_layers.cases(), *light]
    return list({name: (name, make, args) for name, make, args in grid}.values())
