"""The models that are timed, as users make them: modules of torchvision and transformers."""

import torch

SEED = 0


class First(torch.nn.Module):
    """The first tensor of a model's result."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids):
        return self.inner(input_ids=ids, return_dict=False)[0]


def image(make, batch):
    return make(), (torch.randn(batch, 3, 224, 224),)


def tokens(make, batch, length, words):
    return First(make()), (torch.randint(0, words, (batch, length)),)


def resnet50():
    import torchvision

    return image(torchvision.models.resnet50, 32)


def vit():
    import torchvision

    return image(torchvision.models.vit_b_16, 10)


def bert():
    import transformers

    return tokens(lambda: transformers.BertModel(transformers.BertConfig()), 8, 128, 30000)


def gpt2():
    import transformers

    config = transformers.GPT2Config(use_cache=False)
    return tokens(lambda: transformers.GPT2LMHeadModel(config), 1, 128, 50000)


MAKERS = {"resnet50_b32": resnet50, "bert_base_b8": bert, "gpt2_b1": gpt2, "vit_b_16_b10": vit}


def make(name, dtype):
    """The module and its inputs on the GPU, with weights of one seed: none is all zeros, as a
    fresh head's are, or the check would compare zeros."""
    torch.manual_seed(SEED)
    module, tensors = MAKERS[name]()
    for parameter in module.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    return module.eval().to(dtype).cuda(), tuple(t.cuda() for t in tensors)
