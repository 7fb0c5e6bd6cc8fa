"""Small models of the sweeps, by name: functions that return (module, args).

Their modules are those of experiments/graphs/small_models.py, whose exported graphs the experiments
run. `batch` comes from the sweep; other arguments stand in its models.
"""

import importlib.util
import pathlib

import torch
from torch import nn

GRAPHS = pathlib.Path(__file__).resolve().parents[1] / "graphs/small_models.py"
_spec = importlib.util.spec_from_file_location("small_models", GRAPHS)
small_models = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_models)


def ffnn(batch, rows=4096, features=32, hidden=64):
    """A feed-forward network with a norm, on `rows` rows for each of the batch."""
    return small_models.FFNN(features, hidden), (torch.randn(batch * rows, features),)


def attention_block(batch, tokens=64, width=64, heads=2):
    """One encoder layer of a transformer."""
    return small_models.AttentionBlock(width, heads), (torch.randn(batch, tokens, width),)


def small_cnn(batch, size=128):
    """A stem, a residual block and a classifier."""
    return small_models.SmallCNN(), (torch.randn(batch, 3, size, size),)


def encoder(batch, tokens, width=256, heads=4, layers=2):
    """Layers of a transformer on `tokens` tokens."""
    return small_models.SmallEncoder(width, heads, layers), (torch.randn(batch, tokens, width),)


class PaddedEncoder(nn.Module):
    """SmallEncoder on as many tokens as it is made for: fewer are padded, what pads is masked."""

    def __init__(self, tokens, width, heads, layers):
        super().__init__()
        self.tokens = tokens
        self.layers = small_models.SmallEncoder(width, heads, layers).layers

    def forward(self, x):
        given = x.shape[1]
        x = nn.functional.pad(x, (0, 0, 0, self.tokens - given))
        mask = (torch.arange(self.tokens, device=x.device) < given).unsqueeze(0)
        for layer in self.layers:
            x = masked_block(layer, x, mask)
        return x[:, :given]


def masked_block(block, x, mask):
    """What an AttentionBlock computes, whose queries see only the keys that the mask has."""
    batch, length, width = x.shape
    qkv = block.qkv(block.norm1(x)).view(batch, length, 3, block.heads, width // block.heads)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    h = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    x = x + block.proj(h.transpose(1, 2).reshape(batch, length, width))
    return x + block.fc2(nn.functional.gelu(block.fc1(block.norm2(x))))


def padded_encoder(batch, tokens, to, width=256, heads=4, layers=2):
    """`encoder` on `tokens` tokens, padded to `to`."""
    return PaddedEncoder(to, width, heads, layers), (torch.randn(batch, tokens, width),)
