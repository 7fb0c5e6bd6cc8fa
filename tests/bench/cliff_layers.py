"""The grid of cliffs.py: linear layers, products, attention and recurrent layers."""

import functools
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

from cliff_convs import ACTS, cast, layers, mask, op, to

sdpa = F.scaled_dot_product_attention


def linears():
    widths = ((64, 64), (100, 100), (768, 768), (768, 3072), (3072, 768), (768, 1000), (100, 10),
              (10, 100), (64, 1), (1, 64))
    rows = (1, 2, 4, 7, 16, 49, 128, 197, 512)
    sizes = [(m, k, n) for (k, n), m in itertools.product(widths, rows) if m * k * n < 6e8]
    sizes += [(4096, 8, 8), (1, 4096, 4096), (1, 768, 50257)]
    for m, k, n in sizes:
        yield f"linear m{m} k{k} n{n}", functools.partial(nn.Linear, k, n), [(m, k)]
    for act, m in itertools.product(("relu", "gelu", "silu"), (1, 49, 197)):
        make = layers(functools.partial(nn.Linear, 768, 768), ACTS[act])
        yield f"linear m{m} k768 n768 {act}", make, [(m, 768)]
    for dtype in (torch.bfloat16, torch.float16):
        short = {torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
        for m, k, n in ((1, 768, 768), (49, 100, 100), (197, 768, 768)):
            make = to(functools.partial(nn.Linear, k, n), dtype)
            yield f"{short} linear m{m} k{k} n{n}", make, [cast(dtype, m, k)]
        for c, k, g in ((64, 1, 1), (64, 3, 1), (64, 3, 64), (100, 3, 1)):
            make = to(functools.partial(nn.Conv2d, c, c, k, 1, k // 2, 1, g), dtype)
            yield f"{short} conv2d c{c} g{g} k{k} 28x28", make, [cast(dtype, 1, c, 28, 28)]
        a = cast(dtype, 12, 197, 64)
        yield f"{short} bmm b12 m197 k64 n197", op(lambda a, b: a @ b.transpose(1, 2)), [a, a]
        yield f"{short} attention h12 t197 d64", op(sdpa), [cast(dtype, 1, 12, 197, 64)] * 3


def products():
    shapes = itertools.product((1, 7, 49, 197, 512), ((64, 64), (100, 100), (768, 768)))
    for m, (k, n) in [*shapes, (4096, (8, 8)), (1, (4096, 4096)), (512, (10, 1)), (100, (1, 100))]:
        yield f"matmul m{m} k{k} n{n}", op(torch.matmul), [(m, k), (k, n)]
    for k, n in ((768, 768), (100, 1000)):
        yield f"matmul vector k{k} by n{n}", op(torch.matmul), [(k,), (k, n)]
        yield f"matmul m{n} by vector k{k}", op(torch.matmul), [(n, k), (k,)]
        yield f"matmul transposed left m{n} k{k}", op(lambda a, b: a.t() @ b), [(k, n), (k, 64)]
        yield f"matmul addmm m49 k{k} n{n}", op(torch.addmm), [(n,), (49, k), (k, n)]
    for b, t, d in itertools.product((12, 64), (7, 49, 197), (32, 64)):
        a = (b, t, d)
        yield f"bmm q k^T b{b} t{t} d{d}", op(lambda q, k: q @ k.transpose(-1, -2)), [a, a]
        yield f"bmm p v b{b} t{t} d{d}", op(torch.bmm), [(b, t, t), a]
    for b, m, k, n in ((64, 1, 64, 197), (12, 197, 1, 197), (100, 10, 10, 10), (1000, 4, 4, 4)):
        yield f"bmm b{b} m{m} k{k} n{n}", op(torch.bmm), [(b, m, k), (b, k, n)]
        yield f"bmm baddbmm b{b} m{m} k{k} n{n}", op(torch.baddbmm), [(b, m, n), (b, m, k),
                                                                      (b, k, n)]
    yield "bmm broadcast right", op(torch.matmul), [(12, 49, 64), (64, 64)]
    yield "bmm broadcast left", op(torch.matmul), [(197, 197), (12, 197, 64)]
    for text, *shapes in (("bhid,bhjd->bhij", (1, 12, 197, 64), (1, 12, 197, 64)),
                          ("bihd,bjhd->bhij", (1, 197, 12, 64), (1, 197, 12, 64)),
                          ("nc,mc->nm", (197, 100), (49, 100)), ("i,j->ij", (512,), (512,))):
        yield f"einsum {text}", op(lambda *a, text=text: torch.einsum(text, *a)), shapes


class SelfAttention(nn.Module):
    def __init__(self, heads, depth, causal):
        super().__init__()
        width = heads * depth
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = sdpa(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, width))


def by_ops(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v


def windowed(q, k, v, bias, allowed):
    """Swin's, by ops: windows share the bias of heads, heads the mask of windows."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias + allowed
    return torch.softmax(scores, -1) @ v


def attentions():
    with_mask = op(lambda q, k, v, m: sdpa(q, k, v, attn_mask=m))
    for h, t, d in ((12, 197, 64), (12, 512, 64), (3, 197, 64), (6, 196, 64), (3, 49, 32),
                    (12, 50, 64), (12, 64, 64), (12, 196, 80), (6, 64, 16)):
        a, name = (1, h, t, d), f"attention h{h} t{t} d{d}"
        yield name, op(sdpa), [a, a, a]
        yield f"{name} causal", op(sdpa, is_causal=True), [a, a, a]
        yield f"{name} float mask", with_mask, [a, a, a, (1, 1, t, t)]
        yield f"{name} bool mask", with_mask, [a, a, a, mask(1, 1, t, t)]
        yield f"{name} padding mask", with_mask, [a, a, a, mask(1, 1, 1, t)]
        yield f"{name} by ops", op(by_ops), [a, a, a]
    a = (64, 3, 49, 32)
    yield "attention windows sdpa b64", with_mask, [a, a, a, (1, 3, 49, 49)]
    yield "attention windows by ops b64", op(windowed), [a, a, a, (1, 3, 49, 49), (64, 1, 49, 49)]
    for h, kv, t in ((12, 3, 197), (8, 1, 64)):
        args = [(1, h, t, 64), (1, kv, t, 64), (1, kv, t, 64)]
        yield f"attention gqa h{h} of {kv} t{t}", op(sdpa, enable_gqa=True), args
    for t in (49, 512):
        args = [(1, 12, 1, 64), (1, 12, t, 64), (1, 12, t, 64)]
        yield f"attention one query of {t}", op(sdpa), args
    for h, t, causal in ((12, 197, False), (12, 128, True), (3, 49, False), (6, 50, False)):
        make = functools.partial(SelfAttention, h, 64, causal)
        yield f"attention layer h{h} t{t}{' causal' if causal else ''}", make, [(1, t, 64 * h)]


class Last(nn.Module):
    """The sequence of results of a recurrent layer, without its last states."""

    def __init__(self, make):
        super().__init__()
        self.layer = make()

    def forward(self, x):
        return self.layer(x)[0]


class GruCell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.x, self.h = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)

    def forward(self, x, h):
        (a, b, c), (d, e, f) = self.x(x).chunk(3, 1), self.h(h).chunk(3, 1)
        z = torch.sigmoid(b + e)
        return (1 - z) * torch.tanh(c + torch.sigmoid(a + d) * f) + z * h


def recurrent():
    P = functools.partial
    for count, width, steps, b in itertools.product((1, 2), (64, 256), (10, 128), (1, 4)):
        make = P(Last, P(nn.LSTM, width, width, count, batch_first=True))
        yield f"lstm x{count} h{width} steps {steps} b{b}", make, [(b, steps, width)]
    make = P(Last, P(nn.LSTM, 64, 64, bidirectional=True))
    yield "lstm both ways h64 steps 32 b1", make, [(32, 1, 64)]
    for kind, b in itertools.product((nn.GRU, nn.RNN), (1, 4)):
        name = kind.__name__.lower()
        yield f"{name} h64 steps 10 b{b}", P(Last, P(kind, 64, 64)), [(10, b, 64)]
    for width in (64, 256):
        yield f"gru cell h{width} b4", P(GruCell, width), [(4, width), (4, width)]


def cases():
    return [*linears(), *products(), *attentions(), *recurrent()]
