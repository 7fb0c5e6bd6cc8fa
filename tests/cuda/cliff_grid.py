"""The grid of cliffs.py here: kinds of layers and ops as large as models have them on a GPU.

A case is (name, make, args) as in tests/bench/cliff_convs.py: the name begins with its family,
`make` builds the module, each of `args` is a shape or a function that returns a tensor. Floats are
cast to the dtype that is asked for.
"""

import functools
import itertools
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from cliff_convs import ACTS, Of, ints, layers, mask, op  # noqa: E402

P = functools.partial
sdpa = F.scaled_dot_product_attention
CHANNELS_LAST = torch.channels_last


def last(*shape):
    return lambda: torch.randn(shape).to(memory_format=CHANNELS_LAST)


def convs():
    def case(c, out, k, side, *, g=1, s=1, d=1, b=16, act=None):
        make = P(nn.Conv2d, c, out, k, s, d * (k - 1) // 2, d, g)
        name = f"conv2d c{c}-{out} g{g} k{k} s{s} d{d} {side}x{side} b{b}{f' {act}' if act else ''}"
        return name, layers(make, ACTS[act]) if act else make, [(b, c, side, side)]

    for c, side in ((24, 112), (64, 56), (100, 28), (256, 28), (512, 14)):
        yield case(c, c, 3, side)
        yield case(c, 2 * c, 1, side, act="relu")
        yield case(c, c, 3, side, s=2)
        yield case(c, c, 3, side, g=c, act="silu")  # depthwise
        yield case(c, c, 7, side, g=c)
        yield case(c, c, 5, side, g=c, s=2)
        yield case(c, c, 3, side, g=c // 4, act="relu")
        yield case(c, c, 3, side, d=2)
    yield case(3, 64, 7, 224, s=2, act="relu")
    yield case(3, 32, 3, 224, s=2)
    yield case(3, 768, 16, 224, s=16)
    yield case(37, 41, 3, 29, b=7)
    yield case(64, 64, 3, 56, b=1)
    yield case(96, 96, 13, 28, g=96)
    # A multiplier of channels, an even kernel, and a strip.
    yield "conv2d multiplier 2", P(nn.Conv2d, 64, 128, 3, 1, 1, 1, 64), [(16, 64, 56, 56)]
    yield "conv2d 1x7", P(nn.Conv2d, 128, 128, (1, 7), 1, (0, 3)), [(16, 128, 28, 28)]
    yield "conv2d 4x4 s2", P(nn.Conv2d, 64, 128, 4, 2, 1), [(16, 64, 56, 56)]
    yield "conv2d reflect", P(nn.Conv2d, 64, 64, 3, 1, 1, padding_mode="reflect"), \
        [(16, 64, 56, 56)]
    for c, k, s in ((64, 2, 2), (64, 4, 2), (128, 3, 2), (100, 3, 1)):
        yield f"transposed c{c} k{k} s{s}", P(nn.ConvTranspose2d, c, c, k, s, k // 2 - 1 + k % 2), \
            [(16, c, 28, 28)]
    yield "transposed groups", P(nn.ConvTranspose2d, 64, 64, 4, 2, 1, 0, 64), [(16, 64, 28, 28)]
    for c, k, g in ((64, 3, 1), (512, 3, 1), (256, 9, 256), (512, 128, 16), (80, 5, 1)):
        yield f"conv1d c{c} k{k} g{g}", P(nn.Conv1d, c, c, k, 1, k // 2, 1, g), [(8, c, 1500)]
    yield "conv1d transposed", P(nn.ConvTranspose1d, 256, 128, 16, 8, 4), [(8, 256, 200)]
    yield "conv3d c32 k3", P(nn.Conv3d, 32, 64, 3, 1, 1), [(4, 32, 16, 28, 28)]
    yield "conv3d 1x3x3", P(nn.Conv3d, 64, 64, (1, 3, 3), 1, (0, 1, 1)), [(4, 64, 8, 28, 28)]
    yield "conv3d 3x1x1", P(nn.Conv3d, 64, 64, (3, 1, 1), 1, (1, 0, 0)), [(4, 64, 8, 28, 28)]
    yield "conv3d depthwise", P(nn.Conv3d, 64, 64, 3, 1, 1, 1, 64), [(4, 64, 8, 28, 28)]


def linears():
    for m, (k, n) in itertools.product(
            (16, 777, 4096), ((768, 768), (768, 3072), (1000, 1000), (768, 50257), (77, 131))):
        if m * n < 1e8:
            yield f"linear m{m} k{k} n{n}", P(nn.Linear, k, n), [(m, k)]
    for act in ("gelu", "silu", "relu"):
        yield f"linear {act}", layers(P(nn.Linear, 768, 3072), ACTS[act]), [(4096, 768)]
    yield "linear k1", P(nn.Linear, 1, 512), [(8192, 1)]
    yield "linear n1", P(nn.Linear, 512, 1), [(8192, 512)]
    gated = lambda x, a, b: F.silu(a(x)) * b(x)  # noqa: E731
    yield "linear gated", lambda: Of(gated, nn.Linear(768, 2048, bias=False),
                                     nn.Linear(768, 2048, bias=False)), [(2048, 768)]
    for b, m, k, n in ((64, 197, 64, 197), (96, 128, 32, 128), (1000, 12, 12, 12),
                       (64, 1, 64, 1000), (16, 500, 33, 77)):
        yield f"bmm b{b} {m}x{k}x{n}", op(torch.bmm), [(b, m, k), (b, k, n)]
    yield "bmm transposed left", op(lambda a, b: a.mT @ b), [(64, 256, 64), (64, 256, 64)]
    yield "bmm broadcast", op(torch.matmul), [(64, 128, 128), (128, 64)]
    yield "bmm einsum bhid,bhjd", op(lambda a, b: torch.einsum("bihd,bjhd->bhij", a, b)), \
        [(8, 128, 12, 64), (8, 128, 12, 64)]


def attentions():
    for b, h, t, d in ((8, 12, 197, 64), (2, 16, 1024, 64), (4, 8, 333, 80), (16, 4, 64, 32),
                       (1, 32, 2048, 128), (8, 3, 50, 24)):
        heads = [(b, h, t, d)] * 3
        text = f"b{b} h{h} t{t} d{d}"
        yield f"attention {text}", op(sdpa), heads
        yield f"attention causal {text}", op(sdpa, is_causal=True), heads
        yield f"attention mask {text}", op(lambda q, k, v, m: sdpa(q, k, v, attn_mask=m)), \
            [*heads, mask(b, 1, t, t)]
        yield f"attention bias {text}", op(lambda q, k, v, m: sdpa(q, k, v, attn_mask=m)), \
            [*heads, (1, h, t, t)]
    yield "attention cross", op(sdpa), [(8, 8, 256, 64), (8, 8, 77, 64), (8, 8, 77, 64)]
    yield "attention decode", op(sdpa), [(16, 16, 1, 64), (16, 16, 777, 64), (16, 16, 777, 64)]
    grouped = lambda q, k, v: sdpa(q, k, v, is_causal=True, enable_gqa=True)  # noqa: E731
    yield "attention grouped heads", op(grouped), [(2, 32, 512, 64), (2, 8, 512, 64),
                                                   (2, 8, 512, 64)]
    by_hand = lambda q, k, v: (q @ k.mT / 8).softmax(-1) @ v  # noqa: E731
    yield "attention by hand", op(by_hand), [(8, 12, 197, 64)] * 3


def norms():
    for n in (64, 100, 768, 1000, 4096, 50257):
        rows = 2**23 // n
        yield f"layer_norm {rows}x{n}", P(nn.LayerNorm, n), [(rows, n)]
        yield f"softmax {rows}x{n}", op(torch.softmax, dim=-1), [(rows, n)]
        yield f"log_softmax {rows}x{n}", op(torch.log_softmax, dim=-1), [(rows, n)]
        yield f"rms_norm {rows}x{n}", P(nn.RMSNorm, n), [(rows, n)]
    for c, side in ((64, 56), (100, 28), (512, 14)):
        shape = (16, c, side, side)
        yield f"batch_norm c{c}", P(nn.BatchNorm2d, c), [shape]
        yield f"group_norm c{c}", P(nn.GroupNorm, 4, c), [shape]
        yield f"instance_norm c{c}", P(nn.InstanceNorm2d, c), [shape]
        after = layers(P(nn.Conv2d, c, c, 3, 1, 1), P(nn.GroupNorm, 4, c), nn.SiLU)
        yield f"group_norm after conv c{c}", after, [shape]
        channels = lambda x, norm: norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)  # noqa: E731
        yield f"layer_norm of channels c{c}", lambda c=c: Of(channels, nn.LayerNorm(c)), [shape]
    yield "softmax dim 1", op(torch.softmax, dim=1), [(16, 21, 112, 112)]


def reductions():
    table = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "var": torch.var,
             "argmax": torch.argmax, "logsumexp": torch.logsumexp, "prod": torch.prod}
    for name, f in table.items():
        for shape, dim in (((4096, 1024), -1), ((4096, 1024), 0), ((64, 1000, 77), 1),
                           ((16, 64, 56, 56), 1)):
            text = "x".join(map(str, shape))
            yield f"reduce {name} {text} dim {dim}", op(f, dim=dim), [shape]
        if name not in ("logsumexp", "amax"):
            yield f"reduce {name} all", op(f), [(1000, 3000)]
    yield "reduce mean of images", op(lambda x: x.mean((2, 3))), [(32, 1280, 7, 7)]
    yield "reduce norm", op(lambda x: F.normalize(x, dim=-1)), [(8192, 512)]
    for name, f in (("cumsum", torch.cumsum), ("cumprod", torch.cumprod),
                    ("logcumsumexp", torch.logcumsumexp)):
        for shape, dim in (((512, 4096), -1), ((4096, 512), 0), ((1, 1000000), -1)):
            yield f"scan {name} {shape[0]}x{shape[1]} dim {dim}", op(f, dim=dim), [shape]
    yield "scan cummax", op(lambda x: torch.cummax(x, -1).values), [(512, 4096)]
    for shape in ((512, 1000), (16, 10000), (8192, 32)):
        text = "x".join(map(str, shape))
        yield f"order sort {text}", op(lambda x: torch.sort(x, dim=-1).values), [shape]
        yield f"order topk {text}", op(lambda x: torch.topk(x, 8, dim=-1).values), [shape]
    yield "order argsort dim 0", op(torch.argsort, dim=0), [(1000, 512)]


def pools():
    for c, side in ((64, 112), (256, 28), (100, 29)):
        shape = (16, c, side, side)
        for name, f, arguments in (("max 3 s2", F.max_pool2d, (3, 2, 1)),
                                   ("max 5 s1", F.max_pool2d, (5, 1, 2)),
                                   ("avg 2 s2", F.avg_pool2d, (2, 2)),
                                   ("avg 3 s1", F.avg_pool2d, (3, 1, 1)),
                                   ("adaptive 1", F.adaptive_avg_pool2d, (1,)),
                                   ("adaptive 7", F.adaptive_avg_pool2d, (7,))):
            pool = lambda x, f=f, arguments=arguments: f(x, *arguments)  # noqa: E731
            yield f"pool {name} c{c} {side}x{side}", op(pool), [shape]
            if c == 256:
                yield f"pool {name} channels last", op(pool), [last(*shape)]
    for mode in ("nearest", "bilinear", "bicubic"):
        aligned = {} if mode == "nearest" else {"align_corners": False}
        yield f"upsample {mode} x2", op(P(F.interpolate, scale_factor=2, mode=mode, **aligned)), \
            [(16, 64, 56, 56)]
    yield "upsample bilinear odd", op(P(F.interpolate, size=(97, 131), mode="bilinear")), \
        [(8, 21, 33, 47)]
    yield "pool grid_sample", op(P(F.grid_sample, align_corners=False)), \
        [(8, 32, 64, 64), lambda: torch.rand(8, 64, 64, 2) * 2 - 1]


def movement():
    image = (16, 64, 56, 56)
    table = {
        "transpose 4096x2048": (lambda x: x.t().contiguous(), (4096, 2048)),
        "transpose 1000x3001": (lambda x: x.t().contiguous(), (1000, 3001)),
        "to channels last": (lambda x: x.permute(0, 2, 3, 1).contiguous(), image),
        "from channels last": (lambda x: x.permute(0, 3, 1, 2).contiguous(), (16, 56, 56, 64)),
        "heads": (lambda x: x.view(16, 197, 12, 64).transpose(1, 2).contiguous(), (16, 197, 768)),
        "cat channels": (lambda x: torch.cat([x, x * 2, x + 1], 1), image),
        "cat last": (lambda x: torch.cat([x, x * 2], -1), (4096, 333)),
        "stack": (lambda x: torch.stack([x, x * 2, x + 1], -1), (4096, 333)),
        "roll": (lambda x: x.roll((-3, -3), (1, 2)), (16, 56, 56, 96)),
        "flip last": (lambda x: x.flip(-1), (4096, 1000)),
        "pad reflect": (lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect"), image),
        "pad constant": (lambda x: F.pad(x, (1, 1, 1, 1)), image),
        "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), image),
        "unfold": (lambda x: F.unfold(x, 3, padding=1), (8, 16, 56, 56)),
        "glu": (lambda x: F.glu(x, -1), (8192, 1024)),
        "repeat_interleave": (lambda x: x.repeat_interleave(4, 1), (2, 8, 1024, 64)),
        "slice step": (lambda x: x[:, ::2].contiguous(), (4096, 2048)),
        "tril": (torch.tril, (16, 1024, 1024)),
        "gelu": (F.gelu, (4096, 4096)),
        "softplus sum": (lambda x: F.softplus(x) + torch.tanh(x) * torch.sigmoid(x), (4096, 4096)),
    }
    for name, (f, shape) in table.items():
        yield f"move {name}", op(f), [shape]
    yield "index embedding", P(nn.Embedding, 50000, 768), [ints(50000, 16, 512)]
    yield "index embedding_bag", P(nn.EmbeddingBag, 50000, 64), [ints(50000, 2048, 20)]
    yield "index select dim 1", op(lambda x, i: x.index_select(1, i)), [(4096, 1000),
                                                                       ints(1000, 500)]
    yield "index gather", op(lambda x, i: x.gather(1, i)), [(4096, 1000), ints(1000, 4096, 1000)]
    yield "index scatter_add", op(lambda x, i, y: x.scatter_add(1, i, y)), \
        [(4096, 1000), ints(1000, 4096, 1000), (4096, 1000)]
    yield "index index_add", op(lambda x, i, y: x.index_add(0, i, y)), \
        [(10000, 128), ints(10000, 40000), (40000, 128)]
    yield "index put", op(lambda x, i, y: x.index_put((i,), y)), \
        [(10000, 128), ints(10000, 4000), (4000, 128)]
    yield "index where", op(lambda m, x, y: torch.where(m, x, y)), \
        [mask(4096, 1024), (4096, 1024), (4096, 1024)]
    yield "index one_hot", op(lambda i: F.one_hot(i, 1000).float()), [ints(1000, 4096)]
    yield "index cross_entropy", op(F.cross_entropy), [(4096, 1000), ints(1000, 4096)]


def recurrent():
    for name, cell in (("lstm", nn.LSTM), ("gru", nn.GRU)):
        yield f"recurrent {name} t50 h256", P(cell, 128, 256, batch_first=True), [(32, 50, 128)]


def cases():
    for family in (convs, linears, attentions, norms, reductions, pools, movement, recurrent):
        yield from family()
