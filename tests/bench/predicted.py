#!/usr/bin/env python3
"""Predicted against measured time of every launch of the zoo, on one core.

    ./lathe doctor --measure
    tests/bench/predicted.py LATHE [--svg FILE] [--isa avx2] [MODEL ...]

LATHE is the program (.lathe/bin/lathe, or Bazel's). Prints the rank correlation, the share of
launches within a factor of two, and those that are furthest off. --svg needs matplotlib. A quiet
machine takes a minute.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORST = 20  # rows that are shown


def zoo():
    return sorted({p.name.split(".")[0] for p in (ROOT / "tests/zoo").glob("*.json.gz")})


def launches(program, model, isa):
    command = [program, "explain", model, "--threads=1", "--json", "--weights=random:0"]
    command += [f"--isa={isa}"] if isa else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"{model}: {done.stderr.strip()}")
    rows = json.loads(done.stdout)["launches"]
    return [dict(row, model=model) for row in rows if row["seconds"] > 0 and row["predicted"] > 0]


def ranks(values):
    """Of each value, from 0; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for i in order[start:end]:
            result[i] = (start + end - 1) / 2
        start = end
    return result


def correlation(a, b):
    """Spearman's."""
    x, y = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    both = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    return both / math.sqrt(sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y))


def ratio(row):
    return row["seconds"] / row["predicted"]


def report(rows):
    within = sum(0.5 <= ratio(row) <= 2 for row in rows) / len(rows)
    rank = correlation([r["seconds"] for r in rows], [r["predicted"] for r in rows])
    print(f"{len(rows)} launches: rank correlation {rank:.4f}, {within:.1%} within a factor of two")
    seen = set()
    for row in sorted(rows, key=lambda r: -abs(math.log(ratio(r)))):
        key = (row["model"], row["label"])
        if key in seen:
            continue
        seen.add(key)
        print(
            f"  {row['model']:20} {row['label'][:36]:36} {row.get('kernel', '-')[:12]:12}"
            f" measured {row['seconds'] * 1e6:9.1f} us, predicted {row['predicted'] * 1e6:9.1f} us"
        )
        if len(seen) == WORST:
            break


def draw(rows, path):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 5))
    colours = {"arithmetic": "#3b6fb6", "memory": "#b8742a", "launch": "#8a8d92"}
    signs = {"arithmetic": "o", "memory": "s", "launch": "x"}
    for bound, colour in colours.items():
        # Layers repeat: one mark for those that are alike to a few percent.
        points = {
            (round(math.log(r["predicted"]) * 20), round(math.log(r["seconds"]) * 20))
            for r in rows
            if r["bound"] == bound
        }
        x = [math.exp(p / 20) * 1e6 for p, _ in points]
        y = [math.exp(q / 20) * 1e6 for _, q in points]
        axes.scatter(x, y, s=9, c=colour, marker=signs[bound], label=bound, linewidths=0.8)
    ends = [0.1, max(max(r["seconds"], r["predicted"]) for r in rows) * 2e6]
    for factor, style in ((1, "-"), (2, ":"), (0.5, ":")):
        axes.plot(ends, [e * factor for e in ends], style, color="#63666b", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="predicted, µs", ylabel="measured, µs")
    axes.set_title("Every launch of the zoo, one core; dotted: a factor of two", fontsize=10)
    axes.legend(title="bound by", frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="*", default=zoo())
    parser.add_argument("--svg")
    parser.add_argument("--isa", default="")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    rows = []
    for model in arguments.models or zoo():
        rows += launches(program, model, arguments.isa)
    report(rows)
    if arguments.svg:
        draw(rows, arguments.svg)


if __name__ == "__main__":
    main()
