"""Results files made for tests: as a sweep leaves them, with any damage a test asks for.

    python tests/report/journals.py OUT.sweep.jsonl     writes the one of 1,000 rows

Times follow from a seed: each model has a speed-up of its own in each configuration, pairs share a
slow drift, and every sample has noise of its own.
"""

import hashlib
import json
import sys
import zlib

import numpy as np

MODELS = [
    ("bert_base", "zoo", 180.0), ("resnet50", "zoo", 95.0), ("gpt2", "zoo", 210.0),
    ("mobilenet_v2", "torchvision", 21.0), ("resnet18", "torchvision", 33.0),
    ("vgg16", "torchvision", 240.0), ("densenet121", "torchvision", 110.0),
    ("squeezenet1_1", "torchvision", 14.0), ("efficientnet_b0", "torchvision", 38.0),
    ("vit_base_patch16_224", "timm", 260.0), ("convnext_tiny", "timm", 120.0),
    ("mixer_b16_224", "timm", 190.0), ("levit_128", "timm", 17.0), ("regnety_002", "timm", 12.0),
    ("swin_tiny_patch4_window7_224", "timm", 140.0), ("AlbertForMaskedLM", "transformers", 160.0),
    ("DistilBert", "transformers", 88.0), ("ElectraSmall", "transformers", 31.0),
    ("MobileBert", "transformers", 64.0), ("OPT_125m", "transformers", 205.0),
    ("Pythia_70m", "transformers", 72.0), ("RobertaForCausalLM", "transformers", 171.0),
    ("T5Small", "transformers", 98.0), ("XGLM", "transformers", 230.0),
    ("small_ffnn", "file", 1.4),
]
PASSES = ["fuse_epilogue", "fuse_pointwise", "fuse_attention", "choose_layout", "fold_constants"]
ENVIRONMENT = {
    "kind": "environment", "id": "0123456789ab", "cpu": "AMD EPYC 9R14", "cores": 16,
    "memory_bytes": 64 << 30, "gpu": None, "os": "Debian GNU/Linux 12", "python": "3.11.2",
    "packages": {"torch": "2.13.0", "numpy": "2.4.6"}, "lathe": "757086e3", "node": "local",
}
SWEEP = {
    "kind": "sweep", "version": 1, "name": "modes", "title": "What do the modes buy?",
    "about": "Every model of the suite in each mode of each backend, static and dynamic, one "
             "thread, against eager in the same process.",
    "spec": {}, "jobs": 0, "started": "2026-11-26T08:00:00Z",
}


def line(record):
    body = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x " % zlib.crc32(body) + body + b"\n"


def settings(**changed):
    return {"model": "resnet18", "source": "zoo", "target": "cpu", "backend": "lathe",
            "mode": None, "options": {}, "dynamic": None, "fullgraph": False, "batch": 1,
            "dtype": "float32", "threads": 1, "against": ["eager"], **changed}


def row(of=None, speedup=1.5, eager_ms=30.0, pairs=20, noise=0.02, seed=0, **changed):
    """A row that passed, with fields replaced."""
    of = of or settings()
    job = hashlib.sha256(json.dumps(of, sort_keys=True).encode()).hexdigest()[:16]
    random = np.random.default_rng([int(job[:8], 16), seed])
    drift = 1 + 0.1 * np.sin(np.arange(pairs) / 7 + random.uniform(0, 6))
    samples = {name: (ms * drift * np.exp(random.normal(0, noise, pairs))).round(5).tolist()
               for name, ms in (("candidate", eager_ms / speedup), ("eager", eager_ms))}
    return {
        "kind": "row", "job": job, "environment": ENVIRONMENT["id"], "settings": of,
        "status": "pass", "reason": None, "details": None,
        "accuracy": {"max_abs": float(random.uniform(1e-7, 9e-6)), "max_rel": 2e-5,
                     "cosine": 0.9999998, "tolerance": 1e-4, "rule": "allclose"},
        "samples": samples, "first_call_ms": 2400.0, "warm_first_call_ms": 420.0,
        "compile_ms": 1800.0, "peak_memory_bytes": 210_000_000,
        "against_peak_memory_bytes": {"eager": 260_000_000},
        "graphs": 1, "graph_breaks": 0, "fallbacks": [], "kernels": [],
        "started": "2026-11-26T08:00:00Z", "seconds": 14.0, "attempts": 1, **changed,
    }


def failed(of, status, reason, details=None):
    return row(of, status=status, reason=reason, details=details, samples={}, first_call_ms=None,
               warm_first_call_ms=None, compile_ms=None, peak_memory_bytes=None,
               against_peak_memory_bytes={}, accuracy=None, graphs=None, graph_breaks=None)


def journal(*records, sweep=True, environment=True):
    """A file's bytes, with the head that every sweep writes."""
    head = [{**SWEEP, "jobs": sum(r.get("kind") == "row" for r in records)}] if sweep else []
    head += [ENVIRONMENT] if environment else []
    return b"".join(map(line, [*head, *records]))


KERNELS = [
    {"label": "conv_bias_relu", "ops": "conv, bn, relu", "kind": "contraction", "count": 9,
     "ms": 4.1, "predicted_ms": 3.8, "line": "model.py:40"},
    {"label": "mean", "ops": "mean", "kind": "split_reduction", "count": 1, "ms": 0.31,
     "predicted_ms": 0.3, "line": "model.py:57"},
    {"label": "linear", "ops": "linear", "kind": "contraction", "count": 1, "ms": None,
     "predicted_ms": 0.2, "line": "model.py:60"},
]
FAILURES = [
    ("fail_accuracy", "largest error 0.31 at output 0, tolerance 1e-4", None),
    ("timeout", "no result after 600 s, killed while compiling", None),
    ("out_of_memory", "needs more than the limit of 8 GiB", None),
    ("refused", "aten.linalg_svd.default is not supported (2 uses)", None),
    ("fail_to_run", "RuntimeError: expected a contiguous tensor",
     'Traceback (most recent call last):\n  File "model.py", line 12, in forward\n'
     "RuntimeError: expected a contiguous tensor"),
]


def configurations():
    """Forty: backends and modes, static and dynamic, two dtypes, one pass at a time taken out."""
    made = [(backend, mode, {}, dynamic, dtype)
            for backend, mode in (("eager", None), ("inductor", "default"),
                                  ("inductor", "max-autotune"), ("onnxruntime", None),
                                  ("lathe", None), ("lathe", "max-autotune"),
                                  ("lathe", "reduce-overhead"))
            for dynamic in (False, True) for dtype in ("float32", "bfloat16")]
    made += [("lathe", None, {"passes": f"default,-{name}"}, False, dtype)
             for name in PASSES for dtype in ("float32", "bfloat16")]
    return made + [("openvino", None, {}, dynamic, dtype)
                   for dynamic in (False, True) for dtype in ("float32",)]


GAINS = {"eager": 1.0, "inductor": 1.32, "onnxruntime": 1.18, "lathe": 1.55, "openvino": 1.24,
         "max-autotune": 1.12, "reduce-overhead": 1.03, "fuse_epilogue": 0.80,
         "fuse_pointwise": 0.74, "fuse_attention": 0.91, "choose_layout": 0.95,
         "fold_constants": 0.99}


def thousand(seed=1, faster=1.0, failing=0.04):
    """Records of 1,000 rows; `faster` scales what lathe gains, for a file to compare with."""
    random = np.random.default_rng(seed)
    taste = {name: np.random.default_rng(7).normal(0, 0.2, len(MODELS)) for name in GAINS}
    records = []
    for backend, mode, options, dynamic, dtype in configurations():
        for i, (model, source, eager_ms) in enumerate(MODELS):
            of = settings(model=model, source=source, backend=backend, mode=mode, options=options,
                          dynamic=dynamic, dtype=dtype, batch=1 + 7 * (source == "torchvision"))
            gain = GAINS[backend] * GAINS.get(mode, 1)
            for name in options.get("passes", "").split(",-")[1:]:
                gain *= GAINS[name]
            if backend == "lathe":
                gain *= faster
            if backend != "eager":
                gain *= np.exp(taste[backend][i] + random.normal(0, 0.05))
                gain *= 0.93 if dynamic else 1
            if backend != "eager" and random.random() < failing:
                records.append(failed(of, *FAILURES[random.integers(len(FAILURES))]))
                continue
            slow = {"max-autotune": 6, "reduce-overhead": 1.2}.get(mode, 1) * (
                {"inductor": 14, "lathe": 1.4, "eager": 0.1}.get(backend, 3))
            cold = 900 * slow * random.lognormal(0, 0.4)
            records.append(row(
                of, speedup=float(gain), eager_ms=eager_ms * (0.7 if dtype != "float32" else 1),
                pairs=30, seed=seed, first_call_ms=cold,
                warm_first_call_ms=cold * random.uniform(0.1, 0.3),
                compile_ms=cold * 0.8 if backend != "eager" else None,
                peak_memory_bytes=int(2.4e8 / random.uniform(0.95, 1.4)),
                against_peak_memory_bytes={"eager": 240_000_000},
                graph_breaks=int(random.random() < 0.1),
                kernels=KERNELS if backend == "lathe" else [],
                fallbacks=[{"op": "aten.topk.default", "count": 2, "line": "moe.py:88",
                            "reason": "no kernel for topk"}]
                if backend == "lathe" and random.random() < 0.06 else []))
    return records


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as out:
        out.write(journal(*thousand()))
