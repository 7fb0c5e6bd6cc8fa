"""One program for every size beside programs for one size each, interleaved in one process.

    python tests/bench/sizes.py MODEL.pt2 SIZES... [--threads 1] [--target wasm] [--json OUT]

MODEL is an export with symbolic sizes, with its weights; SIZES are the dims of its first input that
are symbols, in order: 3x24. For each, the results are compared before anything is timed. The ratio
is the static program's median over the dynamic one's, above 1 where the dynamic one is faster; its
range is that of the ratios of neighbouring samples, 10th to 90th percentile. Then what each costs:
milliseconds to compile, bytes of temporaries. Exits with 1 when results differ by more than
peers.py allows.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import torch

from peers import NUMPY_DTYPES, SEED, interleave, largest_error, row_of

import lathe
from lathe import random


def inputs_at(model, sizes):
    """Torch tensors for every input, of which the first has `sizes` for its symbols."""
    shape = model.info["inputs"][0]["shape"]
    symbols = [d for d in shape if isinstance(d, str)]
    if len(symbols) != len(sizes):
        sys.exit(f"the first input has shape {shape}: expected {len(symbols)} sizes, got {sizes}")
    names = {}
    for (factor, name), size in zip(map(factor_and_name, symbols), sizes):
        names[name] = size // factor
    tensors = []
    for info in model.info["inputs"]:
        at = [dim if isinstance(dim, int) else size_of(dim, names) for dim in info["shape"]]
        array = random.input(info["name"], NUMPY_DTYPES[info["dtype"]], at, SEED)
        tensors.append(torch.from_numpy(np.ascontiguousarray(array)))
    return tensors


def factor_and_name(dim):
    """(32, "s39") of "32*s39"."""
    factor, _, name = dim.rpartition("*")
    return int(factor or 1), name


def size_of(dim, names):
    factor, name = factor_and_name(dim)
    return factor * names[name]


def compare(dynamic, static, sizes, arguments):
    """One row: both at `sizes`, with what they cost."""
    tensors = inputs_at(dynamic, sizes)
    error = largest_error(dynamic(*tensors), static(*tensors))
    mine, theirs = interleave(
        [lambda: dynamic(*tensors), lambda: static(*tensors)], arguments.seconds
    )
    samples = {"dynamic": mine, "static": theirs}
    row = row_of("x".join(map(str, sizes)), arguments.threads, samples, ("static", "dynamic"))
    named = dict(zip(static.info["dims"], next(reversed(static.compiled.seen))))
    compiled = next(a for a in static.artifacts if a["sizes"] == named)
    return row | {
        "error": error,
        "static_compile_ms": compiled["compile_ms"],
        "static_arena_bytes": compiled["arena_bytes"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("sizes", nargs="+", help="of the first input's symbols: 3x24")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--seconds", type=float, default=2, help="least time for each size")
    parser.add_argument("--json", help="where to write the rows")
    arguments = parser.parse_args()
    options = {"threads": arguments.threads, "target": arguments.target}
    dynamic = lathe.load(arguments.model, dynamic=True, **options)
    static = lathe.load(arguments.model, dynamic=False, **options)
    print(f"one program for every size: compiled in {dynamic.info['compile_ms']:.0f} ms")
    print(
        f"{'sizes':<14} {'static':>10} {'dynamic':>10} {'ratio':>7} {'10-90 %':>13} "
        f"{'compiled in':>12} {'temporaries':>12}"
    )
    rows = []
    for text in arguments.sizes:
        row = compare(dynamic, static, [int(s) for s in text.split("x")], arguments)
        rows.append(row)
        spread = f"{row['ratio_p10']:.2f} to {row['ratio_p90']:.2f}"
        verdict = "" if row["error"] <= 1 else f"  WRONG: {row['error']:.1f} x the tolerance"
        print(
            f"{text:<14} {row['static_ms']:>7.3g} ms {row['dynamic_ms']:>7.3g} ms "
            f"{row['ratio']:>6.2f}x {spread:>13} {row['static_compile_ms']:>9.0f} ms "
            f"{row['static_arena_bytes'] / 1e6:>9.2f} MB{verdict}",
            flush=True,
        )
    if arguments.json:
        document = {"compile_ms": dynamic.info["compile_ms"], "rows": rows}
        pathlib.Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")
    return 0 if all(row["error"] <= 1 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
