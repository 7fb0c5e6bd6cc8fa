"""Writes what the browser's peers need of a model of the zoo, with the weights of seed 0.

    python tests/bench/web/write_onnx.py FOLDER MODEL ...

FOLDER/MODEL.onnx is what torch.onnx.export makes of the exported graph; FOLDER/MODEL.json names the
files of its inputs, and of the results of PyTorch eager, as raw little-endian elements. Needs
PyTorch 2.13 and onnxscript.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "frontend/python"), str(ROOT / "tests/bench")]

import numpy as np  # noqa: E402
import torch  # noqa: E402

import eager  # noqa: E402
from lathe import random  # noqa: E402

SEED = 0


def inputs_of(program):
    """The tensors that `--inputs random:0` makes, by the graph's names."""
    tensors = {}
    values = program.graph_module.graph.nodes
    metas = {node.name: node.meta["val"] for node in values if node.op == "placeholder"}
    for name in program.graph_signature.user_inputs:
        meta = metas[name]
        dtype = str(meta.dtype).removeprefix("torch.")
        array = random.input(name, dtype, tuple(meta.shape), SEED)
        tensors[name] = torch.from_numpy(np.ascontiguousarray(array))
    return tensors


def write_tensor(folder, stem, name, tensor):
    path = folder / f"{stem}.{name}.bin"
    path.write_bytes(tensor.detach().contiguous().numpy().tobytes())
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"name": name, "file": path.name, "dtype": dtype, "shape": list(tensor.shape)}


def write(name, folder):
    path = ROOT / f"tests/zoo/{name}.aten.json.gz"
    program = eager.load_program(path, SEED)
    tensors = inputs_of(program)
    module = eager.load(path, SEED)
    with torch.inference_mode():
        results = torch.utils._pytree.tree_leaves(module(*tensors.values()))
    onnx = torch.onnx.export(
        program.module(check_guards=False), tuple(tensors.values()), dynamo=True, verbose=False
    )
    onnx.save(folder / f"{name}.onnx")
    facts = {
        "inputs": [write_tensor(folder, name, key, value) for key, value in tensors.items()],
        "results": [
            write_tensor(folder, name, f"result{i}", value) for i, value in enumerate(results)
        ],
    }
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:]:
        write(name, folder)
        print(f"{name}.onnx")
    return 0


if __name__ == "__main__":
    sys.exit(main())
