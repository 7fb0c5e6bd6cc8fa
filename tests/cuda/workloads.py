"""The models that are timed, as users make them: modules of torchvision and transformers, and the
zoo's small graphs."""

import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("frontend/python", "tests/bench")]

import eager  # noqa: E402
import family_models  # noqa: E402
import more_models  # noqa: E402
from model_parts import First, Masked, Positional, image, tower  # noqa: E402

SEED = 0


class Dlrm(torch.nn.Module):
    """A recommender: embeddings and a dense tower, whose products by pairs meet in another."""

    def __init__(self, tables=26, rows=10_000, width=64):
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(rows, width) for _ in range(tables))
        self.dense = tower(13, 512, 256, width)
        self.top = tower(width + tables * (tables + 1) // 2, 512, 256, 1)
        pairs = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("pairs", pairs[0] * (tables + 1) + pairs[1])

    def forward(self, dense, ids):
        x = self.dense(dense)
        rows = torch.stack([x, *(t(ids[:, i]) for i, t in enumerate(self.tables))], 1)
        products = (rows @ rows.transpose(1, 2)).flatten(1)[:, self.pairs]
        return self.top(torch.cat([x, products], 1))


def dlrm():
    return Dlrm().eval(), (torch.randn(2048, 13), torch.randint(0, 10_000, (2048, 26)))


def tokens(name, batch, length, **config):
    """A model of transformers on tokens; `name` without its Config and Model."""
    import transformers

    made = getattr(transformers, f"{name}Config")(use_cache=False, **config)
    kind = {"GPT2": "LMHeadModel", "Llama": "ForCausalLM", "OPT": "ForCausalLM",
            "T5": "EncoderModel"}.get(name, "Model")
    model = getattr(transformers, name + kind)(made)
    return First(model).eval(), (torch.randint(5, made.vocab_size, (batch, length)),)


def roberta():
    """With a mask: each sentence has its own length."""
    model, (ids,) = tokens("Roberta", 16, 256)
    lengths = torch.randint(128, 257, (16, 1))
    return Masked(model.inner).eval(), (ids, (torch.arange(256) < lengths).long())


def wav2vec2():
    import transformers

    return Positional(transformers.Wav2Vec2Model(transformers.Wav2Vec2Config())).eval(), (
        torch.randn(2, 16_000),
    )


def dinov2():
    import transformers

    return Positional(transformers.Dinov2Model(transformers.Dinov2Config())).eval(), (
        torch.randn(8, 3, 224, 224),
    )


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


LLAMA = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12)
MAKERS = {
    "resnet50_b32": lambda: image("resnet50", 32),
    "bert_base_b8": lambda: tokens("Bert", 8, 128),
    "gpt2_b1": lambda: tokens("GPT2", 1, 128),
    "vit_b_16_b10": lambda: image("vit_b_16", 10),
    # What nobody tuned for.
    "regnet_y_400mf_b16": lambda: image("regnet_y_400mf", 16),
    "convnext_tiny_b16": lambda: image("convnext_tiny", 16),
    "efficientnet_b0_b16": lambda: image("efficientnet_b0", 16),
    "mobilenet_v2_b16": lambda: image("mobilenet_v2", 16),
    "densenet121_b8": lambda: image("densenet121", 8),
    "gpt2_b8_s512": lambda: tokens("GPT2", 8, 512),
    "roberta_mask_b16": roberta,
    "opt_125m_b4": lambda: tokens("OPT", 4, 256),
    "wav2vec2_b2": wav2vec2,
    "swin_t_b8": lambda: image("swin_t", 8),
    "resnet50_b1": lambda: image("resnet50", 1),
    "llama_160m": lambda: tokens("Llama", 1, 512, **LLAMA),
    "t5_encoder_b8": lambda: tokens("T5", 8, 128),
    "dinov2_b8": dinov2,
    "dlrm": dlrm,
}
USUAL = tuple(MAKERS)[:4]
ZOO_MAKERS = {name: (lambda name=name: zoo(name)) for name in ("lerp", "ffnn", "resnet18", "unet")}


def make(name, dtype):
    """The module and its inputs on the GPU, with weights of one seed: none is all zeros, as a
    fresh head's are, or the check would compare zeros."""
    torch.manual_seed(SEED)
    makers = {**MAKERS, **ZOO_MAKERS, **more_models.MAKERS, **family_models.MAKERS}
    module, tensors = makers[name]()
    for parameter in module.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    return module.to(dtype).cuda(), tuple(t.cuda() for t in tensors)
