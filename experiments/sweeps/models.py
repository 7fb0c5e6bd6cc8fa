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
