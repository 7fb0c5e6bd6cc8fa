"""Padding, buckets, one dynamic program or a program for each size: the plot of a study.

    ./lathe run experiments/configs/padding.json
    python tests/bench/padding.py [--results results/padding.json] [--svg tests/bench/padding.svg]

Adds PyTorch eager at the same sizes, with as many threads. Prints the rows. Needs PyTorch and, for
the plot, matplotlib.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments/graphs"))

from small_models import SmallEncoder  # noqa: E402

WIDTH = 256
REPEATS = 30
# Of the study's pipelines and of eager: how each is drawn.
COLOURS = {
    "recompiled": "#3b6fb6",
    "dynamic": "#b8342a",
    "buckets": "#4b8f4b",
    "padded": "#b8842a",
    "eager": "#8a8d92",
}
NAMES = {
    "recompiled": "a program for each size",
    "dynamic": "one dynamic program",
    "buckets": "padded to buckets",
    "padded": "padded to 512",
    "eager": "PyTorch eager",
}


def read_rows(path):
    """By pipeline, by number of tokens: median and compile time in milliseconds."""
    table = {}
    for row in json.loads(path.read_text())["rows"]:
        if row["status"] != "ok":
            sys.exit(f"{row['model']}, {row['variant']}: {row['status']}")
        tokens = int(row["model"].split()[0])
        table.setdefault(row["variant"], {})[tokens] = row["median_ms"], row["compile_ms"]
    return table


def eager_ms(sizes):
    """Medians of PyTorch eager on one thread."""
    torch.set_num_threads(1)
    model = SmallEncoder().eval()
    medians = {}
    with torch.inference_mode():
        for tokens in sizes:
            x = torch.randn(1, tokens, WIDTH)
            samples = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                model(x)
                samples.append(1e3 * (time.perf_counter() - start))
            medians[tokens] = statistics.median(samples[REPEATS // 3 :])
    return medians


def compile_ms(table):
    """What all sizes of the study cost to compile, by pipeline; a program twice is free."""
    totals = {"recompiled": sum(ms for _, ms in table["recompiled"].values())}
    for once in ("dynamic", "padded"):
        totals[once] = max(ms for _, ms in table[once].values())
    buckets = {}
    for tokens, (_, ms) in table["buckets"].items():
        bucket = max(16, 1 << (tokens - 1).bit_length())
        buckets[bucket] = max(ms, buckets.get(bucket, 0))
    totals["buckets"] = sum(buckets.values())
    return totals


def draw(table, eager, totals, path):
    """Time of a call over sizes, and what compiling for all of them takes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "padding", "font.size": 9})
    from matplotlib import pyplot
    from matplotlib.ticker import ScalarFormatter

    figure, (calls, compiles) = pyplot.subplots(
        1, 2, figsize=(8.4, 3.3), width_ratios=(2.2, 1), layout="constrained"
    )
    curves = {name: {n: ms for n, (ms, _) in rows.items()} for name, rows in table.items()}
    for name, curve in (curves | {"eager": eager}).items():
        calls.plot(*zip(*sorted(curve.items())), "o-", ms=3, lw=1.3, color=COLOURS[name])
        calls.lines[-1].set_label(NAMES[name])
    calls.set(xscale="log", yscale="log", xlabel="tokens", ylabel="milliseconds a call")
    for axis in (calls.xaxis, calls.yaxis):
        axis.set_major_formatter(ScalarFormatter())
    calls.set_xticks([1, 8, 32, 128, 512])
    calls.legend(frameon=False, fontsize=8)
    names = list(totals)[::-1]
    bars = compiles.barh(
        range(len(names)),
        [totals[name] / 1e3 for name in names],
        color=[COLOURS[name] for name in names],
        height=0.6,
    )
    compiles.bar_label(bars, fmt="%.2f s", padding=3, fontsize=8)
    compiles.set_yticks(range(len(names)), names)
    compiles.set_xlabel(f"seconds to compile for {len(eager)} sizes")
    compiles.set_xlim(0, 1.3 * max(totals.values()) / 1e3)
    for axes in (calls, compiles):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "results/padding.json")
    parser.add_argument("--svg", type=pathlib.Path)
    arguments = parser.parse_args()
    table = read_rows(arguments.results)
    sizes = sorted(table["dynamic"])
    eager = eager_ms(sizes)
    totals = compile_ms(table)
    print("tokens  " + "".join(f"{name:>12}" for name in COLOURS))
    for tokens in sizes:
        cells = [table[name][tokens][0] for name in COLOURS if name != "eager"] + [eager[tokens]]
        print(f"{tokens:6}  " + "".join(f"{ms:9.2f} ms" for ms in cells))
    print("compile " + "".join(f"{totals[name]:9.0f} ms" for name in COLOURS if name in totals))
    if arguments.svg:
        draw(table, eager, totals, arguments.svg)


if __name__ == "__main__":
    main()
