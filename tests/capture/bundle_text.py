"""Writes small bundles by hand, for tests that have no PyTorch."""

import json


def guard(code, kind="LAMBDA_GUARD", source=""):
    return {"kind": kind, "source": source, "code": code, "line": "", "place": ""}


def tensor(source, size, stride, dtype="float32", requires_grad=False):
    code = (f"check_tensor({source}, Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, "
            f"AutogradCPU), torch.{dtype}, device=None, requires_grad={requires_grad}, "
            f"size={size}, stride={stride})")
    return guard(code, "TENSOR_MATCH", source)


def write(folder, guards, *, limit=8, dynamic=None, calls=()):
    """A bundle of one frame with these lists of guards, a compilation each."""
    (folder / "guards").mkdir(parents=True)
    compiles = []
    for i, rows in enumerate(guards):
        (folder / f"guards/0_{i}.json").write_text(json.dumps(rows))
        compiles.append({"frame": 0, "compile": i, "call": i, "guards": f"guards/0_{i}"})
    manifest = {"format": "lathe-bundle", "version": 1, "entry": 0, "dynamic": dynamic,
                "recompile_limit": limit, "compiles": compiles}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "calls.jsonl").write_text("".join(json.dumps(call) + "\n" for call in calls))
    return folder
