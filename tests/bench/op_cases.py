"""The calls of ops.py, as data: for each row, an expression over operands a, b, c and so on.

An operand is a shape of f32, or one with a word in front: "positive" and "unit" are above 0 and
between -1 and 1, "bool" is that, ("int", N) is of i64 below N, "order" is sorted along the last
dim, "weight" of a layer, whose products neither grow nor vanish. A row may have several calls.
"""

WIDE = (1000, 1000)
IMAGE = (8, 64, 56, 56)
SERIES = (8, 64, 3136)
VOLUME = (2, 16, 16, 28, 28)
LINE = (1_000_000,)


def unary(call, *operand):
    return [(call, [operand[0] if operand else WIDE])]


def weight(rows):
    return "weight", (rows, 128)


def matrices(call, *sizes, columns=None):
    """Square ones of each size; a second operand has so many columns."""
    return [(call.replace("SIZE", str(n)), [(n, n), *([(n, columns)] if columns else [])])
            for n in sizes]


POSITIVE, UNIT, BOOL, INTS = [(w, WIDE) for w in ("positive", "unit", "bool")] + [
    (("int", 1000), WIDE)]
PAIR = [WIDE, WIDE]

ROWS = {
    **{name: unary(f"torch.{name}(a)") for name in (
        "abs", "asinh", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1", "floor",
        "isinf", "isnan", "neg", "relu", "round", "sigmoid", "sign", "sin", "sinh", "square", "tan",
        "tanh", "trunc")},
    **{name: unary(f"torch.{name}(a)", POSITIVE) for name in (
        "log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sqrt")},
    **{name: unary(f"torch.{name}(a)", UNIT) for name in ("acos", "asin", "atanh")},
    **{name: unary(f"F.{name}(a)") for name in (
        "elu", "gelu", "glu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "silu",
        "softplus")},
    **{name: [(f"torch.{name}(a, b)", PAIR), (f"torch.{name}(a, b)", [WIDE, (1000, 1)])] for name in
       ("add", "maximum", "minimum", "mul", "sub")},
    **{name: [(f"torch.{name}(a, b)", PAIR)] for name in (
        "atan2", "eq", "ge", "gt", "le", "lt", "ne")},
    **{name: [(f"torch.{name}(a, b)", [WIDE, POSITIVE])] for name in (
        "div", "floor_divide", "fmod", "remainder")},
    **{name: [(f"torch.{name}(a, b)", [INTS, INTS])] for name in (
        "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
        "gcd")},
    **{name: [(f"torch.{name}(a, b)", [BOOL, BOOL])] for name in (
        "logical_and", "logical_or", "logical_xor")},
    **{name: [(f"torch.{name}(a, 1)", [WIDE]), (f"torch.{name}(a, 0)", [WIDE]),
              (f"torch.{name}(a, 0)", [LINE])] for name in ("cumsum", "cummax", "cummin")},
    **{f"arg{name}": [(f"torch.{name}(a, 1)[1]", [WIDE]), (f"torch.{name}(a, 0)[1]", [WIDE]),
                      (f"torch.{name}(a, 0)[1]", [("order", LINE)])]
       for name in ("cummax", "cummin")},
    **{name: [(f"torch.{name}(a, dim=1)", [WIDE]), (f"torch.{name}(a, dim=0)", [WIDE])] for name in
       ("amax", "amin", "argmax", "argmin", "mean", "std", "sum", "var")},
    **{name: [(f"torch.{name}(a, dim=1)", [BOOL]), (f"torch.{name}(a)", [BOOL])] for name in
       ("all", "any")},
    **{name: [(f"torch.{name}(a, dim=1)", [WIDE]), (f"torch.{name}(a, dim=0)", [WIDE])] for name in
       ("softmax", "log_softmax")},
    **{f"adaptive_avg_pool{n}d": [(f"F.adaptive_avg_pool{n}d(a, 7)", [shape])] for n, shape in
       ((1, SERIES), (2, IMAGE), (3, VOLUME))},
    **{f"avg_pool{n}d": [(f"F.avg_pool{n}d(a, 3, 2, 1)", [shape])] for n, shape in
       ((1, SERIES), (2, IMAGE), (3, VOLUME))},
    **{f"max_pool{n}d": [(f"F.max_pool{n}d(a, 3, 2, 1)", [shape])] for n, shape in
       ((1, SERIES), (2, IMAGE), (3, VOLUME))},
    **{f"argmax_pool{n}d": [(f"F.max_pool{n}d(a, 2, return_indices=True)", [shape])] for n, shape in
       ((1, SERIES), (2, IMAGE), (3, VOLUME))},
    **{name: [(f"torch.{name}(a)", [WIDE])] for name in ("tril", "triu")},
    **{name: unary(f"torch.{name}(a)", POSITIVE) for name in ("digamma", "erfc", "i0", "lgamma")},
    **{name: unary(f"torch.special.{name}(a)", POSITIVE) for name in (
        "airy_ai", "erfcx", "i0e", "i1", "i1e")},
    **{name: unary(f"torch.special.bessel_{name}(a)", POSITIVE) for name in (
        "j0", "j1", "y0", "y1")},
    **{name: unary(f"torch.special.modified_bessel_{name}(a)", POSITIVE) for name in ("k0", "k1")},
    **{f"{name}e": unary(f"torch.special.scaled_modified_bessel_{name}(a)", POSITIVE)
       for name in ("k0", "k1")},
    "erfinv": unary("torch.erfinv(a)", UNIT),
    "ndtri": unary("torch.special.ndtri(a * a)", UNIT),
    "polygamma": unary("torch.polygamma(2, a)", POSITIVE),
    **{name: [(f"torch.{name}(a, b)", [POSITIVE, POSITIVE])] for name in ("igamma", "igammac")},
    **{f"hermite_{kind}": [(f"torch.special.hermite_polynomial_{kind}(a, b)", [WIDE, INTS])]
       for kind in ("h", "he")},
    "laguerre_l": unary("torch.special.laguerre_polynomial_l(a, 5)"),
    "legendre_p": unary("torch.special.legendre_polynomial_p(a, 5)"),
    "as_strided": unary("torch.as_strided(a, (900, 900), (1001, 1), 5) + 1"),
    "bitcast": unary("a.view(torch.int32) + 1"),
    "zeta": unary("torch.special.zeta(a + 1, a)", POSITIVE),
    "cholesky": matrices("torch.linalg.cholesky_ex(a @ a.mT + 400 * torch.eye(SIZE))[0]", 128, 512),
    "complex_householder": [
        *matrices("torch.linalg.qr(torch.complex(a, a.mT))[1].abs()", 64, 256),
        *matrices("torch.linalg.svdvals(torch.complex(a, a.mT))", 64, 256)],
    "complex_lu": matrices(
        "torch.linalg.lu_factor_ex(torch.complex(a, a.mT) + 40 * torch.eye(SIZE))[0].abs()",
        64, 256),
    "eigh": [*matrices("(lambda w, v: (v * w) @ v.mT)(*torch.linalg.eigh(a + a.mT))", 64, 256),
             *matrices("torch.linalg.eigvalsh(a + a.mT)", 64, 256)],
    "householder": matrices("torch.linalg.qr(a)[1].abs()", 128, 512),
    "ldl": matrices("torch.linalg.ldl_factor_ex(a @ a.mT + 400 * torch.eye(SIZE))[0]", 128, 256),
    "lu": matrices("torch.linalg.lu_factor_ex(a)[0]", 128, 256),
    "svd": [*matrices("torch.linalg.svdvals(a)", 64, 256),
            *matrices("(lambda u, s, v: (u * s) @ v)(*torch.linalg.svd(a))", 64, 256)],
    "triangular_solve": [
        *matrices("torch.linalg.solve_triangular(a.tril() + 400 * torch.eye(SIZE), b, "
                  "upper=False)", 128, 512, columns=32),
        *matrices("torch.linalg.solve_triangular(a.triu() + 400 * torch.eye(SIZE), b, "
                  "upper=True)", 512, columns=1)],
    "acosh": unary("torch.acosh(a + 1)", POSITIVE),
    "addcdiv": [("torch.addcdiv(a, b, c, value=2)", [WIDE, WIDE, POSITIVE])],
    "addcmul": [("torch.addcmul(a, b, c, value=2)", [WIDE] * 3)],
    "addmm": [("torch.addmm(a, b, c)", [(512,), (512, 512), (512, 512)])],
    "arange": [("torch.arange(1_000_000) + a", [(1,)])],
    "argsort": [("torch.argsort(a, stable=True)", [WIDE]),
                ("torch.argsort(a, stable=True)", [LINE]),
                ("torch.argsort(a, dim=0, stable=True)", [WIDE])],
    "attention": [("F.scaled_dot_product_attention(a, b, c)", [(1, 12, 384, 64)] * 3)],
    "baddbmm": [("torch.baddbmm(a, b, c)", [(8, 128, 128)] * 3)],
    "batch_norm": [("F.batch_norm(a, b, c)", [IMAGE, (64,), ("positive", (64,))])],
    "bitwise_not": unary("torch.bitwise_not(a)", INTS),
    "cast": [("a.to(torch.float64)", [WIDE]), ("a.to(torch.bfloat16)", [WIDE]),
             ("a.to(torch.int32)", [WIDE]), ("a.to(torch.float32)", [INTS])],
    "cat": [("torch.cat([a, b])", PAIR), ("torch.cat([a, b], 1)", PAIR)],
    "clamp": unary("torch.clamp(a, -1, 1)"),
    "clone": unary("torch.clone(a)"),
    "contiguous": [("a.transpose(0, 1).contiguous()", [WIDE])],
    "convolution": [("F.conv2d(a, b, padding=1)", [(1, 64, 56, 56), (64, 64, 3, 3)])],
    "copy": [("torch.ops.aten.copy(a, b)", PAIR)],
    "cumprod": [("torch.cumprod(a, 1)", [UNIT]), ("torch.cumprod(a, 0)", [UNIT]),
                ("torch.cumprod(a, 0)", [("unit", LINE)])],
    "diff": [("torch.diff(a, dim=1)", [WIDE]), ("torch.diff(a, dim=0)", [WIDE])],
    "embedding": [("F.embedding(b, a)", [(10000, 512), (("int", 10000), (2048,))])],
    "expand": [("a.expand(1000, 1000) + b", [(1000, 1), WIDE])],
    "flip": [("torch.flip(a, [0])", [WIDE]), ("torch.flip(a, [1])", [WIDE])],
    "fourier": [("torch.view_as_real(torch.fft.fft(torch.view_as_complex(a)))", [(64, 1024, 2)]),
                ("torch.view_as_real(torch.fft.rfft(a))", [(64, 1000)]),
                ("torch.fft.irfft(torch.view_as_complex(a))", [(64, 501, 2)]),
                ("torch.view_as_real(torch.fft.fft2(torch.view_as_complex(a)))",
                 [(256, 256, 2)]),
                ("torch.view_as_real(torch.fft.fft(torch.view_as_complex(a)))", [(64, 997, 2)])],
    "full": [("torch.full((1000, 1000), 2.0) + a", [(1,)])],
    "gather": [("torch.gather(a, 1, b)", [WIDE, INTS]), ("torch.gather(a, 0, b)", [WIDE, INTS])],
    "grid_sample": [
        ("F.grid_sample(a, b, align_corners=False)",
         [(4, 16, 56, 56), ("unit", (4, 56, 56, 2))]),
        ("F.grid_sample(a, b, 'nearest', 'border', False)",
         [(4, 16, 56, 56), ("unit", (4, 56, 56, 2))]),
        ("F.grid_sample(a, b, 'bicubic', 'reflection', False)",
         [(4, 16, 56, 56), ("unit", (4, 56, 56, 2))]),
        ("F.grid_sample(a, b, align_corners=False)",
         [(2, 8, 12, 28, 28), ("unit", (2, 12, 28, 28, 3))])],
    "group_norm": [("F.group_norm(a, 8)", [IMAGE])],
    "gru": [("torch.gru(a, b, (c, d), False, 1, 0.0, False, False, False)[0]",
             [(32, 8, 128), (1, 8, 128), weight(384), weight(384)])],
    "index": [("a[b]", [WIDE, (("int", 1000), (1000,))]),
              ("a[b, c]", [WIDE, (("int", 1000), LINE), (("int", 1000), LINE)])],
    "index_put": [("torch.index_put(a, (b,), c)", [WIDE, (("int", 1000), (500,)), (500, 1000)]),
                  ("torch.index_put(a, (b,), c, True)",
                   [(1000,), (("int", 1000), (100_000,)), (100_000,)])],
    "index_select": [("torch.index_select(a, 0, b)", [WIDE, (("int", 1000), (1000,))]),
                     ("torch.index_select(a, 1, b)", [WIDE, (("int", 1000), (1000,))])],
    "layer_norm": [("F.layer_norm(a, (1000,), b, c)", [WIDE, (1000,), (1000,)])],
    "lerp": [("torch.lerp(a, b, 0.3)", PAIR)],
    "linear": [("F.linear(a, b, c)", [(128, 768), (768, 768), (768,)])],
    "log_sigmoid": unary("F.logsigmoid(a)"),
    "logical_not": unary("torch.logical_not(a)", BOOL),
    "logcumsumexp": [("torch.logcumsumexp(a, 1)", [(100, 1000)]),
                     ("torch.logcumsumexp(a, 0)", [(100, 1000)])],
    "logsumexp": [("torch.logsumexp(a, 1)", [WIDE]), ("torch.logsumexp(a, 0)", [WIDE])],
    "lstm": [("torch.lstm(a, (b, c), (d, e), False, 1, 0.0, False, False, False)[0]",
              [(32, 8, 128), (1, 8, 128), (1, 8, 128), weight(512), weight(512)])],
    "matmul": [("torch.matmul(a, b)", [(512, 512), (512, 512)]),
               ("torch.matmul(a, b)", [(16, 128, 64), (16, 64, 128)])],
    "pad": [("F.pad(a, (1, 1, 1, 1))", [IMAGE])],
    "pad_edges": [("F.pad(a, (3, 3, 3, 3), 'reflect')", [IMAGE]),
                  ("F.pad(a, (2, 2, 2, 2), 'replicate')", [IMAGE]),
                  ("F.pad(a, (2, 2, 2, 2), 'circular')", [IMAGE])],
    "permute": [("a.permute(0, 2, 3, 1).contiguous()", [IMAGE]),
                ("a.permute(3, 2, 1, 0).contiguous()", [IMAGE])],
    "pow": [("torch.pow(a, 2)", [WIDE]), ("torch.pow(a, 2.5)", [POSITIVE]),
            ("torch.pow(a, b)", [POSITIVE, WIDE])],
    "prod": [("torch.prod(a, 1)", [UNIT]), ("torch.prod(a, 0)", [UNIT])],
    "repeat": [("a.repeat(4, 1)", [(250, 1000)]), ("a.repeat(1, 4)", [(1000, 250)])],
    "reshape": [("a.transpose(0, 1).reshape(-1)", [WIDE])],
    "rms_norm": [("F.rms_norm(a, (1000,), b)", [WIDE, (1000,)])],
    "rnn_relu": [("torch.rnn_relu(a, b, (c, d), False, 1, 0.0, False, False, False)[0]",
                  [(32, 8, 128), (1, 8, 128), weight(128), weight(128)])],
    "rnn_tanh": [("torch.rnn_tanh(a, b, (c, d), False, 1, 0.0, False, False, False)[0]",
                  [(32, 8, 128), (1, 8, 128), weight(128), weight(128)])],
    "roll": [("torch.roll(a, 7, 1)", [WIDE]), ("torch.roll(a, 7, 0)", [WIDE])],
    "scatter": [("torch.scatter(a, 1, b, c)", [WIDE, INTS, WIDE]),
                ("torch.scatter(a, 0, b, c)", [WIDE, INTS, WIDE]),
                ("torch.scatter_add(a, 0, b, c)", [(1000,), (("int", 1000), LINE), LINE])],
    "scatter_reduce": [("torch.scatter_reduce(a, 1, b, c, 'amax')", [WIDE, INTS, WIDE]),
                       ("torch.scatter_reduce(a, 0, b, c, 'prod')", [WIDE, INTS, UNIT])],
    "searchsorted": [("torch.searchsorted(a, b)", [("order", (10,)), LINE]),
                     ("torch.searchsorted(a, b)", [("order", (1000,)), LINE]),
                     ("torch.searchsorted(a, b)", [("order", LINE), (100_000,)])],
    "select": [("a.select(1, 3) + 1", [(1000, 8, 1000)])],
    "select_scatter": [("torch.select_scatter(a, b, 0, 3)", [WIDE, (1000,)]),
                       ("torch.select_scatter(a, b, 1, 3)", [WIDE, (1000,)])],
    "slice": [("a[:, 3:900].clone()", [WIDE]), ("a[:, ::3].clone()", [WIDE])],
    "slice_scatter": [("torch.slice_scatter(a, b, 1, 100, 600)", [WIDE, (1000, 500)])],
    "split_with_sizes": [("[x + 1 for x in torch.split(a, [300, 700], 1)]", [WIDE])],
    "squeeze": [("a.squeeze(1) + 1", [(1000, 1, 1000)])],
    "unsqueeze": [("a.unsqueeze(1) + 1", [WIDE])],
    "upsample_bilinear2d": [
        ("F.interpolate(a, scale_factor=2, mode='bilinear')", [(4, 32, 56, 56)]),
        ("F.interpolate(a, size=(75, 91), mode='bilinear', align_corners=True)",
         [(4, 32, 56, 56)])],
    "upsample_nearest2d": [("F.interpolate(a, scale_factor=2)", [(4, 32, 56, 56)]),
                           ("F.interpolate(a, size=(75, 91))", [(4, 32, 56, 56)])],
    "vector_norm": [("torch.linalg.vector_norm(a, dim=1)", [WIDE]),
                    ("torch.linalg.vector_norm(a, 1, dim=0)", [WIDE])],
    "where": [("torch.where(a, b, c)", [BOOL, WIDE, WIDE])],
}

# Rows that no call of PyTorch is: parts of graphs, what others decompose into, and what draws.
NO_CALL = {
    "alias": "a name for its operand", "assert_bounds": "the host reads a number",
    "assert_index": "beside the ops that it is of",
    "assert_metadata": "checks, and computes nothing",
    "bind_size": "the host reads a number",
    "constant": "a value of the graph", "dropout": "its operand, where nothing is trained",
    "fused": "a group that a pass makes", "ldl_solve": "what ldl is read by",
    "param": "an argument of the graph",
    "rand": "draws", "recurrent_layer": "a direction of gru, lstm and rnn",
    "size_value": "a number", "swapped": "the rows that lu exchanged",
    "trunc_divide": "a mode of div",
}

# Operators that are said in others, by what they are mostly made of.
COMPOSITES = {
    "sort": [("torch.sort(a, stable=True)", [WIDE]), ("torch.sort(a, stable=True)", [LINE]),
             ("torch.sort(a, stable=True)", [(100_000, 10)])],
    "topk": [("torch.topk(a, 10)", [WIDE]), ("torch.topk(a, 10)", [LINE])],
    "kthvalue": [("torch.kthvalue(a, 100)", [WIDE])],
    "nonzero": [("torch.nonzero(a > 1)", [WIDE])],
    "masked_select": [("a[a > 1]", [WIDE])],
    "unique": [("torch.unique(a, return_counts=True)", [(("int", 500), (100_000,))])],
    "repeat_interleave": [("torch.repeat_interleave(a, b, 0)", [WIDE, (("int", 4), (1000,))])],
    "bincount": [("torch.bincount(a)", [(("int", 500), (1_000_000,))])],
    "median": [("torch.median(a, 1)", [WIDE]), ("torch.median(a)", [LINE])],
    "mode": [("torch.mode(a, 1)[0]", [(("int", 20), (100, 1000))])],
    "quantile": [("torch.quantile(a, 0.3, 1)", [WIDE])],
    "bucketize": [("torch.bucketize(a, b)", [WIDE, ("order", (100,))])],
    "cdist": [("torch.cdist(a, b)", [(300, 64), (300, 64)])],
    "unfold": [("F.unfold(a, 3, padding=1)", [(4, 32, 28, 28)])],
    "fold": [("F.fold(a, (28, 28), 3, padding=1)", [(4, 288, 784)])],
    "pixel_shuffle": [("F.pixel_shuffle(a, 2)", [(4, 64, 56, 56)])],
    "bicubic": [("F.interpolate(a, scale_factor=2, mode='bicubic')", [(2, 16, 56, 56)])],
    "instance_norm": [("F.instance_norm(a)", [IMAGE])],
    "cross_entropy": [("F.cross_entropy(a, b)", [WIDE, (("int", 1000), (1000,))])],
    "einsum": [("torch.einsum('bij,bjk->bik', a, b)", [(16, 128, 64), (16, 64, 128)])],
    "masked_fill": [("a.masked_fill(b, 0.0)", [WIDE, BOOL])],
    "index_add": [("torch.index_add(a, 0, b, c)", [WIDE, (("int", 1000), (1000,)), WIDE])],
    "take_along_dim": [("torch.take_along_dim(a, b, 1)", [WIDE, INTS])],
    "histc": [("torch.histc(a, 100, -3, 3)", [WIDE])],
    "cosine_similarity": [("F.cosine_similarity(a, b)", PAIR)],
}
