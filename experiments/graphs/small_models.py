"""Small models of the experiments, and the script that exports their graphs.

Run it with PyTorch installed, from the root of the tree:

    python experiments/graphs/small_models.py

It writes one bare model JSON for each model beside itself, without weights: `--weights random:SEED`
gives every machine the same ones. Stack traces name this file relative to the tree.
"""

import gzip
import json
import pathlib
import tempfile
import zipfile

import torch
from torch import nn


class FFNN(nn.Module):
    """Two hidden layers with a norm: the smallest thing that deserves the name network."""

    def __init__(self, features=32, hidden=64, classes=10):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        h = nn.functional.gelu(self.up(x))
        h = self.norm(h)
        h = h + nn.functional.gelu(self.mix(h))
        return torch.softmax(self.head(h), dim=-1)


class AttentionBlock(nn.Module):
    """One encoder layer of a transformer, with its norms first."""

    def __init__(self, width=64, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        h = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(h.transpose(1, 2).reshape(batch, length, width))
        return x + self.fc2(nn.functional.gelu(self.fc1(self.norm2(x))))


class SmallCNN(nn.Module):
    """A stem, a residual block and a classifier, with batch norms to fold away."""

    def __init__(self, channels=16, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.bn0 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn0(self.stem(x))), 2)
        h = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(x + self.bn2(self.conv2(h)))
        return self.head(x.mean(dim=(2, 3)))


class SmallEncoder(nn.Module):
    """Layers of a transformer for any number of tokens."""

    def __init__(self, width=256, heads=4, layers=2):
        super().__init__()
        self.layers = nn.ModuleList(AttentionBlock(width, heads) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


# Each with its arguments, and those of their dims that are symbols. The first three have few
# weights and many rows: what passes between their kernels is larger than a cache.
MODELS = {
    "small_ffnn": (FFNN, (torch.zeros(65536, 32),), None),
    "attention_block": (AttentionBlock, (torch.zeros(128, 64, 64),), None),
    "small_cnn": (SmallCNN, (torch.zeros(1, 3, 512, 512),), None),
    "small_encoder": (
        SmallEncoder,
        (torch.zeros(1, 64, 256),),
        ({1: torch.export.Dim("tokens", min=1, max=512)},),
    ),
}


def relative_stacks(value, here):
    """Every string of the graph with this file's path made relative and torch's cut to torch/."""
    if isinstance(value, dict):
        return {key: relative_stacks(item, here) for key, item in value.items()}
    if isinstance(value, list):
        return [relative_stacks(item, here) for item in value]
    if not isinstance(value, str):
        return value
    site = str(pathlib.Path(torch.__file__).parent.parent) + "/"
    return value.replace(str(here), f"experiments/graphs/{here.name}").replace(site, "")


def main():
    here = pathlib.Path(__file__).resolve()
    torch.manual_seed(0)
    for name, (model, args, dynamic_shapes) in MODELS.items():
        program = torch.export.export(model().eval(), args, dynamic_shapes=dynamic_shapes)
        with tempfile.TemporaryDirectory() as folder:
            archive = pathlib.Path(folder) / "m.pt2"
            torch.export.save(program, archive)
            with zipfile.ZipFile(archive) as files:
                member = next(n for n in files.namelist() if n.endswith("models/model.json"))
                graph = json.loads(files.read(member))
        text = json.dumps(relative_stacks(graph, here), separators=(",", ":")).encode()
        with open(here.parent / f"{name}.json.gz", "wb") as out:
            out.write(gzip.compress(text, mtime=0))
        print(f"{name}: {len(program.graph.nodes)} nodes")


if __name__ == "__main__":
    main()
