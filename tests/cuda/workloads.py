"""The models that are timed, as users make them: modules of torchvision and transformers, and the
zoo's small graphs."""

import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("frontend/python", "tests/bench")]

import eager  # noqa: E402

SEED = 0


class First(torch.nn.Module):
    """The first tensor of a model's result."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids):
        return self.inner(input_ids=ids, return_dict=False)[0]


def image(make, batch):
    return make().eval(), (torch.randn(batch, 3, 224, 224),)


def tokens(make, batch, length, words):
    return First(make()).eval(), (torch.randint(0, words, (batch, length)),)


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


def on_gpu(module):
    """The module there: also the tensors that its graph makes, which were exported on a CPU."""
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            module.graph.erase_node(node)
            continue
        there = torch.device("cuda")
        node.args = tuple(there if isinstance(a, torch.device) else a for a in node.args)
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": there}
    for name, value in list(vars(module).items()):
        if isinstance(value, torch.Tensor):
            setattr(module, name, value.cuda())
    module.recompile()
    return module.cuda()


def zoo(name):
    """The module of a graph of the zoo, and inputs of its shapes."""
    module = on_gpu(eager.load(ROOT / f"tests/zoo/{name}.aten.json.gz", SEED))
    shapes = [node.meta["val"].shape for node in module.graph.nodes if node.op == "placeholder"]
    return module, tuple(torch.randn(shape) for shape in shapes)


MAKERS = {"resnet50_b32": resnet50, "bert_base_b8": bert, "gpt2_b1": gpt2, "vit_b_16_b10": vit}
ZOO_MAKERS = {name: (lambda name=name: zoo(name)) for name in ("lerp", "ffnn", "resnet18", "unet")}


def make(name, dtype):
    """The module and its inputs on the GPU, with weights of one seed: none is all zeros, as a
    fresh head's are, or the check would compare zeros."""
    torch.manual_seed(SEED)
    module, tensors = {**MAKERS, **ZOO_MAKERS}[name]()
    for parameter in module.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    return module.to(dtype).cuda(), tuple(t.cuda() for t in tensors)
