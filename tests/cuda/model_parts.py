"""What the models of workloads.py and more_models.py are made with."""

import torch


class First(torch.nn.Module):
    """The first tensor of a model's result."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids):
        return self.inner(input_ids=ids, return_dict=False)[0]


class Masked(First):
    def forward(self, ids, mask):
        return self.inner(input_ids=ids, attention_mask=mask, return_dict=False)[0]


class Positional(First):
    def forward(self, x):
        return self.inner(x, return_dict=False)[0]


def tower(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


def image(name, batch):
    """A model of torchvision's."""
    import torchvision

    model = torchvision.models.get_model(name, weights=None)
    return model.eval(), (torch.randn(batch, 3, 224, 224),)
