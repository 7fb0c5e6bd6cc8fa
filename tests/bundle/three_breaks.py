"""The model of three_breaks.zip: three graph breaks, and two recompiles by CALLS.

The first frame alone sees `scale` and `is_gated`, so that a call recompiles nothing else.
"""

import torch


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 16)
        self.outer = torch.nn.Linear(16, 8)

    def forward(self, x, scale=2, is_gated=True):
        h = self.inner(x) * scale
        if is_gated:
            h = torch.sigmoid(h) * h
        print(end="")  # break: a call without a graph
        h = torch.relu(h) + 1
        if h.sum() > 1e9:  # break: a branch on values
            h = h / 2
        h = torch.softmax(h, -1)
        torch._dynamo.graph_break()  # break: asked for
        return self.outer(h)


CALLS = [{}, {"scale": 3}, {"scale": 3, "is_gated": False}]
