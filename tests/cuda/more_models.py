"""Models beside those of workloads.py, which nobody timed while Lathe was made faster: families of
torchvision and transformers, and modules as users write them by hand. What is slow here is a kind
of model that the compiler does not know yet, not a row to tune.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from model_parts import First, Masked, Positional, image, tower


class Out(nn.Module):
    """What a segmentation model of torchvision calls "out"."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)["out"]


def segmentation(name, batch):
    import torchvision

    model = torchvision.models.get_model(name, weights=None, weights_backbone=None)
    return Out(model).eval(), (torch.randn(batch, 3, 256, 256),)


def video(name, shape):
    import torchvision

    return torchvision.models.get_model(name, weights=None).eval(), (torch.randn(shape),)


def hugging(name, kind="Model", batch=8, length=128, mask=False, **config):
    """A model of transformers on tokens, whose config has few layers where it is told."""
    import transformers

    made = getattr(transformers, f"{name}Config")(**config)
    made.use_cache = False
    model = getattr(transformers, name + kind)(made)
    ids = torch.randint(5, min(made.vocab_size, 30_000), (batch, length))
    if not mask:
        return First(model).eval(), (ids,)
    lengths = torch.randint(length // 2, length + 1, (batch, 1))
    return Masked(model).eval(), (ids, (torch.arange(length) < lengths).long())


def pixels(name, kind="Model", batch=8, side=224, **config):
    import transformers

    model = getattr(transformers, name + kind)(getattr(transformers, f"{name}Config")(**config))
    return Positional(model).eval(), (torch.randn(batch, 3, side, side),)


def numbers(name, shape, **config):
    """A model of transformers on numbers of one shape."""
    import transformers

    model = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**config))
    return Positional(model).eval(), (torch.randn(shape),)


class Decoder(nn.Module):
    """Both halves of a translator."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids, later):
        return self.inner(input_ids=ids, decoder_input_ids=later, return_dict=False)[0]


def translator(name, kind="Model", **config):
    import transformers

    made = getattr(transformers, f"{name}Config")(**config)
    made.use_cache = False
    model = getattr(transformers, name + kind)(made)
    return Decoder(model).eval(), tuple(torch.randint(5, 30_000, (8, n)) for n in (128, 64))


class Graphs(nn.Module):
    """Sums over the neighbours of a node, and attention over them."""

    def __init__(self, width=128, layers=3):
        super().__init__()
        self.linear = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.score = nn.ModuleList(nn.Linear(2 * width, 1) for _ in range(layers))

    def forward(self, x, edges):
        source, target = edges
        for linear, score in zip(self.linear, self.score):
            h = linear(x)
            weight = F.leaky_relu(score(torch.cat([h[source], h[target]], -1))).float().exp()
            total = torch.zeros(len(x), 1, device=x.device).index_add(0, target, weight)
            message = h[source] * (weight / total[target]).to(h.dtype)
            x = F.elu(torch.zeros_like(h).index_add(0, target, message) + x)
        return x


class Bags(nn.Module):
    """A recommender with lists of ids."""

    def __init__(self, width=64):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(20_000, width, mode="mean") for _ in range(4))
        self.top = tower(4 * width, 256, 1)

    def forward(self, ids):
        return self.top(torch.cat([bag(ids[i]) for i, bag in enumerate(self.bags)], -1))


class Experts(nn.Module):
    """Each token goes to two of eight experts."""

    def __init__(self, width=512, experts=8):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 4 * width) * 0.02)
        self.down = nn.Parameter(torch.randn(experts, 4 * width, width) * 0.02)

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).topk(2, -1)
        share = torch.zeros_like(self.gate(x)).scatter(-1, chosen, weight)
        each = torch.einsum("ti,eio->eto", x, self.up)
        return torch.einsum("eto,eoi,te->ti", F.gelu(each), self.down, share)


class Recurrent(nn.Module):
    def __init__(self, kind=nn.LSTM, width=256):
        super().__init__()
        self.embed = nn.Embedding(10_000, width)
        self.rnn = kind(width, width, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 20)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


class Gated(nn.Module):
    """Dilated causal convolutions with gates, as WaveNet has them."""

    def __init__(self, width=64, layers=10):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2 ** (i % 8))
                                   for i in range(layers))
        self.mix = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))

    def forward(self, x):
        for conv, mix in zip(self.convs, self.mix):
            value, gate = conv(F.pad(x, (conv.dilation[0], 0))).chunk(2, 1)
            x = x + mix(value.tanh() * gate.sigmoid())
        return x


class Residual(nn.Module):
    """A block of a diffusion model: group norms, time, attention over pixels and over words."""

    def __init__(self, c, heads=8, words=768):
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(32, c) for _ in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(c, c, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(1280, c)
        self.layer_norms = nn.ModuleList(nn.LayerNorm(c) for _ in range(2))
        self.own = nn.MultiheadAttention(c, heads, batch_first=True)
        self.cross = nn.MultiheadAttention(c, heads, kdim=words, vdim=words, batch_first=True)

    def forward(self, x, time, text):
        h = self.convs[0](F.silu(self.norms[0](x))) + self.time(F.silu(time))[:, :, None, None]
        x = x + self.convs[1](F.silu(self.norms[1](h)))
        tokens = self.norms[2](x).flatten(2).transpose(1, 2)
        h = self.layer_norms[0](tokens)
        tokens = tokens + self.own(h, h, h, need_weights=False)[0]
        h = self.layer_norms[1](tokens)
        tokens = tokens + self.cross(h, text, text, need_weights=False)[0]
        return x + tokens.transpose(1, 2).reshape(x.shape)


class Volumes(nn.Module):
    """A small U-Net of volumes."""

    def __init__(self, c=16):
        super().__init__()
        self.down = nn.ModuleList(self.block(a, b) for a, b in ((1, c), (c, 2 * c), (2 * c, 4 * c)))
        self.up = nn.ModuleList(nn.ConvTranspose3d(a, a // 2, 2, 2) for a in (4 * c, 2 * c))
        self.mix = nn.ModuleList(self.block(a, a // 2) for a in (4 * c, 2 * c))

    @staticmethod
    def block(a, b):
        return nn.Sequential(nn.Conv3d(a, b, 3, padding=1), nn.InstanceNorm3d(b), nn.LeakyReLU())

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x if not kept else F.max_pool3d(x, 2))
            kept.append(x)
        for up, mix, skip in zip(self.up, self.mix, reversed(kept[:-1])):
            x = mix(torch.cat([up(x), skip], 1))
        return x


class Mixer(nn.Module):
    def __init__(self, width=512, tokens=196, layers=8):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(width), tower(tokens, 256, tokens), nn.LayerNorm(width),
                           tower(width, 2048, width)]) for _ in range(layers))

    def forward(self, x):
        for first, across, second, along in self.layers:
            x = x + across(first(x).mT).mT
            x = x + along(second(x))
        return x.mean(1)


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (3, 64, 128, 1024)
        self.convs = nn.Sequential(*(layer for a, b in zip(widths, widths[1:])
                                     for layer in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b),
                                                   nn.ReLU())))
        self.head = tower(1024, 512, 40)

    def forward(self, x):
        return self.head(self.convs(x).amax(-1))


class Rays(nn.Module):
    """Densities and colours of points along rays, and what a camera sees of them."""

    def __init__(self):
        super().__init__()
        self.net = tower(60, 256, 256, 256, 256, 4)

    def forward(self, points, steps):
        bands = points[..., None] * 2.0 ** torch.arange(10, device=points.device)
        x = torch.cat([bands.sin(), bands.cos()], -1).flatten(-2).to(points.dtype)
        out = self.net(x)
        alpha = 1 - (-F.relu(out[..., 3]) * steps).exp()
        left = torch.cumprod(1 - alpha + 1e-6, -1).roll(1, -1)
        return ((alpha * left)[..., None] * out[..., :3].sigmoid()).sum(-2)


class Larger(nn.Module):
    """Super-resolution by pixels that are shuffled."""

    def __init__(self, c=64, blocks=8):
        super().__init__()
        self.head = nn.Conv2d(3, c, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
            for _ in range(blocks))
        self.tail = nn.Sequential(nn.Conv2d(c, 4 * c, 3, padding=1), nn.PixelShuffle(2),
                                  nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, x):
        x = self.head(x)
        y = x
        for block in self.body:
            y = y + 0.1 * block(y)
        return self.tail(x + y)


class Styled(nn.Module):
    """A convolution whose weights each image has its own of, as one of many groups."""

    def __init__(self, c=128):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(c, c, 3, 3) * 0.03)
        self.style = nn.Linear(512, c)

    def forward(self, x, z):
        b, c, h, w = x.shape
        weight = self.weight * self.style(z)[:, None, :, None, None]
        scale = weight.float().square().sum((2, 3, 4), keepdim=True).add(1e-8).rsqrt()
        weight = (weight * scale.to(weight.dtype)).reshape(b * c, c, 3, 3)
        y = F.conv2d(x.reshape(1, b * c, h, w), weight, padding=1, groups=b)
        return F.leaky_relu(y.reshape(b, c, h, w), 0.2)


class Retained(nn.Module):
    """Linear attention in chunks, with a decay."""

    def __init__(self, width=512, heads=8):
        super().__init__()
        self.heads = heads
        self.qkvg = nn.Linear(width, 4 * width)
        self.norm = nn.GroupNorm(heads, width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v, g = self.qkvg(x).view(b, t, 4, self.heads, -1).permute(2, 0, 3, 1, 4)
        at = torch.arange(t, device=x.device)
        decay = 1 - 2.0 ** (-5.0 - torch.arange(self.heads, device=x.device))
        distance = (at[:, None] - at).clamp_min(0)
        mask = (decay[:, None, None] ** distance).tril().to(x.dtype)
        y = ((q @ k.mT) * mask) @ v
        y = self.norm(y.transpose(1, 2).reshape(b * t, c)).view(b, t, c)
        return self.out(y * F.silu(g.transpose(1, 2).reshape(b, t, c)))


def conformer():
    import torchaudio

    return torchaudio.models.Conformer(144, 4, 576, 8, 31).eval(), (
        torch.randn(8, 400, 144), torch.full((8,), 400))


def whisper():
    import transformers
    from transformers.models.whisper import modeling_whisper

    config = transformers.WhisperConfig(encoder_layers=6, d_model=512, encoder_attention_heads=8)
    return Positional(modeling_whisper.WhisperEncoder(config)).eval(), (torch.randn(4, 80, 3000),)


def by_hand(make, *shapes):
    def drawn():
        return make().eval(), tuple(s() if callable(s) else torch.randn(s) for s in shapes)

    return drawn


def ids(limit, *shape):
    return lambda: torch.randint(0, limit, shape)


MAKERS = {
    "mnasnet1_0": lambda: image("mnasnet1_0", 16),
    "inception_v3": lambda: (image("inception_v3", 1)[0], (torch.randn(8, 3, 299, 299),)),
    "swin_v2_t": lambda: image("swin_v2_t", 8),
    "maxvit_t": lambda: image("maxvit_t", 8),
    "efficientnet_b3": lambda: image("efficientnet_b3", 8),
    "wide_resnet50_2": lambda: image("wide_resnet50_2", 16),
    "regnet_x_1_6gf": lambda: image("regnet_x_1_6gf", 16),
    "deeplabv3_mobilenet": lambda: segmentation("deeplabv3_mobilenet_v3_large", 4),
    "fcn_resnet50": lambda: segmentation("fcn_resnet50", 4),
    "r3d_18": lambda: video("r3d_18", (4, 3, 16, 112, 112)),
    "mvit_v2_s": lambda: video("mvit_v2_s", (2, 3, 16, 224, 224)),
    "deberta_v2": lambda: hugging("DebertaV2", num_hidden_layers=6, hidden_size=768,
                                  num_attention_heads=12, intermediate_size=3072, mask=True),
    "xlnet": lambda: hugging("XLNet", n_layer=6, d_model=768, n_head=12, d_inner=3072),
    "bloom": lambda: hugging("Bloom", hidden_size=1024, n_layer=8, n_head=16),
    "gpt_neox": lambda: hugging("GPTNeoX", "ForCausalLM", hidden_size=768, num_hidden_layers=6,
                                num_attention_heads=12, intermediate_size=3072),
    "mistral": lambda: hugging("Mistral", "ForCausalLM", batch=2, length=512, hidden_size=1024,
                               num_hidden_layers=6, num_attention_heads=16, intermediate_size=3584,
                               num_key_value_heads=4, sliding_window=256),
    "gemma2": lambda: hugging("Gemma2", batch=2, length=512, hidden_size=1024, head_dim=128,
                              num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4,
                              intermediate_size=4096),
    "phi": lambda: hugging("Phi", batch=2, length=512, hidden_size=1024, num_hidden_layers=6,
                           num_attention_heads=16, intermediate_size=4096),
    "qwen3": lambda: hugging("Qwen3", batch=2, length=512, hidden_size=1024, head_dim=64,
                             num_hidden_layers=6, num_attention_heads=16, num_key_value_heads=8,
                             intermediate_size=3072),
    "fnet": lambda: hugging("FNet", num_hidden_layers=6),
    "convbert": lambda: hugging("ConvBert", num_hidden_layers=6),
    "bart": lambda: translator("Bart", encoder_layers=4, decoder_layers=4, d_model=512),
    "t5": lambda: translator("T5", num_layers=4),
    "whisper_encoder": whisper,
    "hubert": lambda: numbers("Hubert", (2, 16_000), num_hidden_layers=6),
    "clip_vision": lambda: pixels("CLIPVision", num_hidden_layers=8),
    "beit": lambda: pixels("Beit", num_hidden_layers=6, use_relative_position_bias=True),
    "segformer": lambda: pixels("Segformer", side=256),
    "swinv2": lambda: pixels("Swinv2", side=224),
    "convnextv2": lambda: pixels("ConvNextV2"),
    "mobilevit": lambda: pixels("MobileViT", side=256),
    "poolformer": lambda: pixels("PoolFormer"),
    "conformer": conformer,
    "graph_attention": by_hand(Graphs, (20_000, 128), ids(20_000, 2, 200_000)),
    "embedding_bags": by_hand(Bags, ids(20_000, 4, 2048, 20)),
    "experts": by_hand(Experts, (2048, 512)),
    "lstm": by_hand(Recurrent, ids(10_000, 32, 100)),
    "gru": by_hand(lambda: Recurrent(nn.GRU), ids(10_000, 32, 100)),
    "wavenet": by_hand(Gated, (8, 64, 4000)),
    "diffusion_block": by_hand(lambda: Residual(320), (2, 320, 64, 64), (2, 1280), (2, 77, 768)),
    "volumes": by_hand(Volumes, (2, 1, 64, 64, 64)),
    "mixer": by_hand(Mixer, (32, 196, 512)),
    "points": by_hand(Points, (32, 3, 2048)),
    "rays": by_hand(Rays, (2048, 64, 3), (64,)),
    "super_resolution": by_hand(Larger, (4, 3, 128, 128)),
    "styled": by_hand(Styled, (8, 128, 64, 64), (8, 512)),
    "retention": by_hand(Retained, (8, 512, 512)),
    "encoder_layers": by_hand(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(
        512, 8, batch_first=True), 6, enable_nested_tensor=False), (16, 200, 512)),
}
