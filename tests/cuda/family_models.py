"""Models of families that neither workloads.py nor more_models.py has, of transformers and
torchvision, mostly with two layers, and attention written by hand: what is asked is whether a kind
of model is slow or wrong.
"""

import math

import torch
from torch import nn

from model_parts import image
from more_models import by_hand, hugging, ids, numbers, pixels, segmentation, translator, video

LAYERS = {"num_hidden_layers": 2}
WIDE = {**LAYERS, "hidden_size": 1024, "num_attention_heads": 16}
LONG = {"batch": 2, "length": 512}
NARROW = {**LAYERS, "hidden_size": 512, "num_attention_heads": 8, "batch": 2, "length": 256}


def vocoder():
    import transformers

    model = transformers.SpeechT5HifiGan(transformers.SpeechT5HifiGanConfig()).eval()
    return model, (torch.randn(1, 100, 80),)


class CausalBlock(nn.Module):
    """A layer of a decoder as courses write it: scores that a buffer's zeros hide."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))
        self.register_buffer("seen", torch.tril(torch.ones(length, length))[None, None])

    def forward(self, x):
        batch, length, width = x.shape
        heads = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.seen[:, :, :length, :length] == 0, float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norms[1](x))


def decoder():
    blocks = [CausalBlock(768, 12, 1024) for _ in range(4)]
    return nn.Sequential(nn.Embedding(32_000, 768), *blocks, nn.LayerNorm(768))


class NonLocal(nn.Module):
    """Attention among the pixels of an image, with a convolution on each side."""

    def __init__(self, channels):
        super().__init__()
        self.parts = nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        q, k, v = self.parts(x).flatten(2).chunk(3, dim=1)
        weights = torch.softmax(torch.bmm(q.transpose(1, 2), k), dim=-1)
        return x + self.out(torch.bmm(v, weights.transpose(1, 2)).view_as(x))


def non_local():
    return nn.Sequential(nn.Conv2d(3, 64, 4, stride=4), nn.ReLU(), NonLocal(64), NonLocal(64))


TEXT = {
    "decoder_by_hand": by_hand(decoder, ids(32_000, 4, 512)),
    "roformer": lambda: hugging("RoFormer", **LAYERS),
    "mobilebert": lambda: hugging("MobileBert", **LAYERS),
    "squeezebert": lambda: hugging("SqueezeBert", **LAYERS),
    "bigbird": lambda: hugging("BigBird", **LAYERS),
    "yoso": lambda: hugging("Yoso", **LAYERS),
    "gpt_neo": lambda: hugging("GPTNeo", "ForCausalLM", num_layers=4, hidden_size=768, num_heads=12,
                               attention_types=[[["global", "local"], 2]], length=512),
    "gptj": lambda: hugging("GPTJ", n_layer=2, n_embd=1024, n_head=16),
    "codegen": lambda: hugging("CodeGen", n_layer=2, n_embd=1024, n_head=16),
    "pegasus": lambda: translator("Pegasus", encoder_layers=2, decoder_layers=2, d_model=512),
    "prophetnet": lambda: translator("ProphetNet", num_encoder_layers=2, num_decoder_layers=2,
                                     hidden_size=512),
    "phi3": lambda: hugging("Phi3", **WIDE, **LONG, intermediate_size=4096),
    "falcon": lambda: hugging("Falcon", **WIDE, **LONG),
    "falcon_alibi": lambda: hugging("Falcon", **WIDE, **LONG, alibi=True),
    "mpt": lambda: hugging("Mpt", n_layers=2, d_model=1024, n_heads=16, **LONG),
    "stablelm": lambda: hugging("StableLm", **WIDE, **LONG, num_key_value_heads=16,
                                intermediate_size=2816),
    "starcoder2": lambda: hugging("Starcoder2", **WIDE, **LONG, num_key_value_heads=2,
                                  intermediate_size=4096),
    "olmo2": lambda: hugging("Olmo2", **WIDE, **LONG, intermediate_size=2816),
    "cohere": lambda: hugging("Cohere", **WIDE, **LONG, num_key_value_heads=16,
                              intermediate_size=2816),
    "gemma3": lambda: hugging("Gemma3Text", **LAYERS, **LONG, hidden_size=1024, head_dim=256,
                              num_attention_heads=4, num_key_value_heads=1,
                              intermediate_size=4096),
    "mixtral": lambda: hugging("Mixtral", **NARROW, num_key_value_heads=4, intermediate_size=1024,
                               num_local_experts=8),
    "qwen2_moe": lambda: hugging("Qwen2Moe", **NARROW, num_key_value_heads=8,
                                 moe_intermediate_size=512, num_experts=8),
    "deepseek_v3": lambda: hugging(
        "DeepseekV3", **NARROW, num_key_value_heads=8, intermediate_size=1024, n_group=2,
        moe_intermediate_size=256, n_routed_experts=8, topk_group=1, num_experts_per_tok=2,
        first_k_dense_replace=1, q_lora_rank=256, kv_lora_rank=128),
    "mamba": lambda: hugging("Mamba", **LAYERS, hidden_size=512, batch=2),
    "mamba2": lambda: hugging("Mamba2", **LAYERS, **LONG, hidden_size=512, num_heads=16,
                              head_dim=64, n_groups=1),
    "modernbert": lambda: hugging("ModernBert", num_hidden_layers=3, length=512),
    "esm": lambda: hugging("Esm", **LAYERS, vocab_size=33, pad_token_id=1, mask_token_id=32,
                           position_embedding_type="rotary"),
    "reformer": lambda: hugging("Reformer", length=256, attn_layers=["local", "lsh"],
                                axial_pos_shape=[16, 16], is_decoder=False),
}
IMAGES = {
    "non_local": by_hand(non_local, (4, 3, 224, 224)),
    "deit": lambda: pixels("DeiT", num_hidden_layers=3),
    "mobilevitv2": lambda: pixels("MobileViTV2", side=256),
    "levit": lambda: pixels("Levit"),
    "pvt_v2": lambda: pixels("PvtV2"),
    "cvt": lambda: pixels("Cvt"),
    "focalnet": lambda: pixels("FocalNet"),
    "bit": lambda: pixels("Bit"),
    "glpn": lambda: pixels("GLPN", side=256),
    "dpt": lambda: pixels("DPT", "ForDepthEstimation", batch=2, side=384),
    "swiftformer": lambda: pixels("SwiftFormer"),
    "hiera": lambda: pixels("Hiera"),
    "mobilenet_v1": lambda: pixels("MobileNetV1"),
    "siglip": lambda: pixels("SiglipVision", num_hidden_layers=3),
    "swin2sr": lambda: pixels("Swin2SR", batch=2, side=64, depths=[2, 2], num_heads=[6, 6],
                              embed_dim=180),
    "timesformer": lambda: numbers("Timesformer", (2, 8, 3, 224, 224), **LAYERS),
    "videomae": lambda: numbers("VideoMAE", (2, 16, 3, 224, 224), **LAYERS),
    "alexnet": lambda: image("alexnet", 8),
    "convnext_base": lambda: image("convnext_base", 8),
    "densenet201": lambda: image("densenet201", 8),
    "regnet_x_400mf": lambda: image("regnet_x_400mf", 8),
    "regnet_x_8gf": lambda: image("regnet_x_8gf", 8),
    "regnet_y_3_2gf": lambda: image("regnet_y_3_2gf", 8),
    "resnext50_32x4d": lambda: image("resnext50_32x4d", 8),
    "resnext101_32x8d": lambda: image("resnext101_32x8d", 8),
    "lraspp": lambda: segmentation("lraspp_mobilenet_v3_large", 4),
    "r2plus1d_18": lambda: video("r2plus1d_18", (2, 3, 16, 112, 112)),
    "s3d": lambda: video("s3d", (2, 3, 16, 224, 224)),
    "swin3d_t": lambda: video("swin3d_t", (2, 3, 16, 224, 224)),
}
SOUNDS = {
    "wavlm": lambda: numbers("WavLM", (2, 16_000), **LAYERS),
    "sew_d": lambda: numbers("SEWD", (2, 16_000), **LAYERS),
    "ast": lambda: numbers("AST", (2, 1024, 128), **LAYERS),
    "w2v_bert": lambda: numbers("Wav2Vec2Bert", (2, 200, 160), **LAYERS),
    "w2v_conformer": lambda: numbers("Wav2Vec2Conformer", (2, 16_000), **LAYERS),
    "hifigan": vocoder,
    "patchtst": lambda: numbers("PatchTST", (32, 512, 7), num_input_channels=7, context_length=512,
                                patch_length=12, patch_stride=12, num_hidden_layers=3, d_model=128,
                                num_attention_heads=16, ffn_dim=256),
}
MAKERS = {**TEXT, **IMAGES, **SOUNDS}
