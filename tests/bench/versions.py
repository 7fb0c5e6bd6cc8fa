"""One build of liblathe beside another, interleaved in one process: what a change cost or bought.

    python tests/bench/versions.py --before OLD/liblathe.so [--after NEW/liblathe.so]
        [--models lerp,ffnn,...] [--threads 1] [--target wasm] [--json OUT]

Both run the zoo's graph with the weights and inputs of one seed, and their results are compared
before anything is timed. The ratio is the new median over the old, above 1 when the new build is
slower; its range is that of neighbouring samples, 10th to 90th percentile. `--after` is this
tree's own build unless given. Exits with 1 when results differ by more than peers.py allows.
"""

import argparse
import json
import math
import os
import pathlib
import sys

import torch

from peers import ROOT, SEED, inputs_of, interleave, largest_error, row_of

import lathe

MODELS = "lerp,ffnn,resnet18,resnet50,bert_base,gpt2,unet,vit_b_16"


def load(library, name, threads, target):
    os.environ["LATHE_LIBRARY"] = str(pathlib.Path(library).resolve())
    path = ROOT / f"tests/zoo/{name}.aten.json.gz"
    return lathe.load(path, weights=f"random:{SEED}", threads=threads, target=target)


def compare(name, libraries, threads, target, min_seconds):
    """One row, with whether the results agree."""
    models = [load(library, name, threads, target) for library in libraries]
    tensors = inputs_of(models[0])
    error = largest_error(models[1](*tensors), models[0](*tensors))
    calls = [lambda model=model: model(*tensors) for model in models]
    before, after = interleave(calls, min_seconds)
    row = row_of(name, threads, {"before": before, "after": after}, ratio=("after", "before"))
    return row | {"agrees": error <= 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", required=True, help="liblathe.so of the tree before")
    parser.add_argument("--after", default=ROOT / "bazel-bin/frontend/api/liblathe.so")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--target", default="cpu", help="cpu, or wasm in Node")
    parser.add_argument("--seconds", type=float, default=5, help="least time for each row")
    parser.add_argument("--json", help="where to write the rows")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    libraries = [arguments.before, arguments.after]
    print(f"{'model':<12} {'threads':>7} {'before':>10} {'after':>10} {'ratio':>7} {'10-90 %':>15}")
    rows = []
    for name in arguments.models.split(","):
        for threads in map(int, arguments.threads.split(",")):
            row = compare(name, libraries, threads, arguments.target, arguments.seconds)
            rows.append(row)
            spread = f"{row['ratio_p10']:.3f} to {row['ratio_p90']:.3f}"
            print(
                f"{name:<12} {threads:>7} {row['before_ms']:>7.3g} ms {row['after_ms']:>7.3g} ms "
                f"{row['ratio']:>7.3f} {spread:>15}{'' if row['agrees'] else '  RESULTS DIFFER'}",
                flush=True,
            )
    geomean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))
    print(f"geomean {geomean:.3f}, worst {max(row['ratio'] for row in rows):.3f}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return 0 if all(row["agrees"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
