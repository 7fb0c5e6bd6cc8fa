"""Models whose graph breaks and recompiles are known, by line."""

import torch


class ThreeBreaks(torch.nn.Module):
    """Three graph breaks, each at a line with a mark."""

    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = self.proj(x)
        print(end="")  # break: print
        y = torch.relu(x)
        if y.sum() > 1e9:  # break: branch
            y = y + 1
        z = y * 2
        torch._dynamo.graph_break()  # break: asked for
        return z.sin()


def first(x):
    return x.abs() + 1


def second(x):
    return x.cos() - 1


def third(x):
    return x.exp() * 2


@torch._dynamo.disable(recursive=False)
def in_eager(x):
    """Its own frame is not compiled, those that it calls are."""
    return third(second(first(x)))


class FiveFrames(torch.nn.Module):
    """forward, three functions, and forward resumed behind the call."""

    def forward(self, x):
        return in_eager(x * 3).sin()


class Choosing(torch.nn.Module):
    """Guards on sizes, a number, a flag and an optional tensor."""

    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(8, 8)

    def forward(self, x, y, n=3, flag=True, bias=None):
        x = self.proj(x)
        if x.shape[0] == 2 * y.shape[0]:
            x = x + 1
        if flag:
            x = x * n
        if bias is not None:
            x = x + bias
        return x.relu() + y.sum()


def failing(x):
    x = x + 1
    torch._dynamo.graph_break()
    raise RuntimeError("on purpose")
