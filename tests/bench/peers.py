"""Lathe beside PyTorch eager, interleaved in one process: who is faster, and by how much.

    python tests/bench/peers.py [--models ffnn,resnet18,bert_base] [--threads 1,2] [--json OUT]

Both run the zoo's graph with the weights and inputs of one seed. Results are compared before
anything is timed. The ratio is eager's median over Lathe's, above 1 when Lathe is faster; its range
is that of the ratios of neighbouring samples, 10th to 90th percentile. Needs PyTorch 2.13.
"""

import argparse
import json
import math
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "frontend/python"), str(ROOT / "tests/bench")]

import numpy as np  # noqa: E402
import torch  # noqa: E402

import eager  # noqa: E402
import lathe  # noqa: E402
from lathe import random  # noqa: E402

SEED = 0
NUMPY_DTYPES = {"f32": "float32", "i64": "int64", "bool": "bool"}
BLOCK_SECONDS = 50e-3
REST_SECONDS = 2e-2  # libgomp spins for up to ten milliseconds
TOLERANCE = 1e-4  # relative, and absolute times the result's root mean square


def inputs_of(model):
    """Torch tensors for every input, as `--inputs random:SEED` makes them."""
    tensors = []
    for info in model.info["inputs"]:
        array = random.input(info["name"], NUMPY_DTYPES[info["dtype"]], info["shape"], SEED)
        tensors.append(torch.from_numpy(np.ascontiguousarray(array)))
    return tensors


def results(value):
    """Tensors of a nested result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in results(item)] if isinstance(value, (list, tuple)) else []


def largest_error(mine, theirs, tolerance=TOLERANCE):
    """The largest error over what the tolerance allows; at most 1 is agreement."""
    worst = 0.0
    for a, b in zip(results(mine), results(theirs), strict=True):
        a, b = a.double(), b.double()
        size = b.where(b.isfinite(), 0).square().mean().sqrt()
        errors = (a - b).abs() / (tolerance * (b.abs() + size)).clamp_min(1e-30)
        # Neither infinities nor NaN are off where both have them.
        error = errors.where((a != b) & ~(a.isnan() & b.isnan()), 0).max().item()
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


def interleave(calls, min_seconds, min_rounds=15, block=BLOCK_SECONDS, rest=REST_SECONDS,
               clock=time.perf_counter):
    """Milliseconds of each call, in alternating blocks of some `block` seconds.

    OpenMP's workers spin for some milliseconds after their last parallel region, on the cores that
    the other side's threads need. So every block begins with a rest, in which they go to sleep,
    and with a call that is not counted. At one thread nobody spins: `rest` may be 0, and `clock`
    the thread's own, which stands still while another program has the core.
    """
    for _ in range(3):
        for call in calls:
            call()
    lengths = []
    for call in calls:
        before = clock()
        call()
        lengths.append(max(1, min(1000, int(block / (clock() - before)))))
    samples = [[] for _ in calls]
    start = time.perf_counter()
    while len(samples[0]) < min_rounds or time.perf_counter() - start < min_seconds:
        for call, length, taken in zip(calls, lengths, samples):
            time.sleep(rest)
            call()
            before = clock()
            for _ in range(length):
                call()
            taken.append((clock() - before) * 1e3 / length)
    return [np.array(s) for s in samples]


def row_of(name, threads, samples, ratio):
    """A row of two sides' samples: medians, the ratio and its spread.

    `samples`: milliseconds by side; `ratio`: the sides above and below its line.
    """
    above, below = (samples[side] for side in ratio)
    ratios = above / below
    return {
        "model": name,
        "threads": threads,
        **{f"{side}_ms": float(np.median(taken)) for side, taken in samples.items()},
        "ratio": float(np.median(above) / np.median(below)),
        "ratio_p10": float(np.percentile(ratios, 10)),
        "ratio_p90": float(np.percentile(ratios, 90)),
        "samples": len(above),
    }


def compare(name, threads, min_seconds):
    """One row, with what Lathe says of itself."""
    path = ROOT / f"tests/zoo/{name}.aten.json.gz"
    torch.set_num_threads(threads)
    module = eager.load(path, SEED)
    model = lathe.load(path, weights=f"random:{SEED}", threads=threads)
    tensors = inputs_of(model)
    with torch.inference_mode():
        error = largest_error(model(*tensors), module(*tensors))
        mine, theirs = interleave(
            [lambda: model(*tensors), lambda: module(*tensors)], min_seconds
        )
    row = row_of(name, threads, {"lathe": mine, "eager": theirs}, ratio=("eager", "lathe"))
    return row | {"error": error, "agrees": error <= 1, "isa": model.info["isa"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default="ffnn,resnet18,bert_base")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=5, help="least time for each row")
    parser.add_argument("--json", help="where to write the rows")
    arguments = parser.parse_args()
    print(f"Lathe beside PyTorch {torch.__version__} eager; a ratio above 1: Lathe is faster")
    print(f"{'model':<12} {'threads':>7} {'eager':>10} {'Lathe':>10} {'ratio':>7} {'10-90 %':>13}")
    rows = []
    for name in arguments.models.split(","):
        for threads in map(int, arguments.threads.split(",")):
            row = compare(name, threads, arguments.seconds)
            rows.append(row)
            spread = f"{row['ratio_p10']:.2f} to {row['ratio_p90']:.2f}"
            verdict = "" if row["agrees"] else f"  WRONG: {row['error']:.1f} x the tolerance"
            print(
                f"{name:<12} {threads:>7} {row['eager_ms']:>7.3g} ms {row['lathe_ms']:>7.3g} ms "
                f"{row['ratio']:>6.2f}x {spread:>13}{verdict}",
                flush=True,
            )
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return 0 if all(row["agrees"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
