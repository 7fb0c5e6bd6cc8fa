#!/usr/bin/env python3
"""Predicted against measured time of every launch of the zoo, on one core.

    ./lathe doctor --measure
    tests/bench/predicted.py LATHE [--svg FILE] [--isa avx2] [MODEL ...]

LATHE is the program (bazel-bin/frontend/cli/lathe). Prints the rank correlation, the share of
launches within a factor of two, and those that are furthest off. A quiet machine takes a minute.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORST = 20  # rows that are shown
LEFT, TOP, SIZE = 62, 26, 320  # of the plot, in units of the picture
# By bound: what a path does from a mark's place, and its style.
MARKS = {
    "arithmetic": ("h0", 'stroke="#3b6fb6" stroke-width="3.5" stroke-linecap="round"'),
    "memory": ("h0", 'stroke="#b8742a" stroke-width="3" stroke-linecap="square"'),
    "launch": ("m-2-2l4 4m0-4l-4 4", 'stroke="#8a8d92" stroke-width=".8"'),
}


def zoo():
    return sorted({p.name.split(".")[0] for p in (ROOT / "tests/zoo").glob("*.json.gz")})


def launches(program, model, isa):
    command = [program, "explain", model, "--threads=1", "--json", "--weights=random:0"]
    command += [f"--isa={isa}"] if isa else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"{model}: {done.stderr.strip()}")
    rows = json.loads(done.stdout)["launches"]
    return [dict(row, model=model) for row in rows if "seconds" in row and "predicted" in row]


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
            f"  {row['model']:20} {row['label'][:36]:36} {row.get('plan', '-')[:12]:12}"
            f" measured {row['seconds'] * 1e6:9.1f} us, predicted {row['predicted'] * 1e6:9.1f} us"
        )
        if len(seen) == WORST:
            break


def marks(rows):
    """By bound, predicted and measured us; launches alike to a few percent share a mark."""
    found = {bound: set() for bound in MARKS}
    for row in rows:
        times = (row["predicted"], row["seconds"])
        found[row["bound"]].add(tuple(math.exp(round(math.log(t) * 20) / 20) * 1e6 for t in times))
    return found


def draw(found, path):
    """As SVG: both axes are logarithmic, of one range; a path holds all marks of a bound."""
    times = [us for points in found.values() for point in points for us in point]
    low, high = math.log(min(times) / 1.5), math.log(max(times) * 1.5)
    bottom, middle = TOP + SIZE, SIZE / 2

    def at(x, y):
        across, up = ((math.log(us) - low) / (high - low) * SIZE for us in (x, y))
        return f"{LEFT + across:.1f} {bottom - up:.1f}"

    def line(factor, style):
        ends = [math.exp(low) * max(1, 1 / factor), math.exp(high) * min(1, 1 / factor)]
        d = "L".join(at(x, x * factor) for x in ends)
        return f'<path stroke="#63666b" stroke-width=".8"{style} d="M{d}"/>'

    def text(x, y, words, more='text-anchor="middle"'):
        return f'<text fill="#000" x="{x}" y="{y}" {more}>{words}</text>'

    size = f"{LEFT + SIZE + 12} {bottom + 40}"
    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="560" viewBox="0 0 {size}" fill="none"'
        ' font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<rect x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}" stroke="#000"/>',
        text(LEFT + middle, 16, "Every launch of the zoo, one core; dotted: a factor of two"),
        text(LEFT + middle, bottom + 32, "predicted, µs"),
        f'<g transform="translate(12 {TOP + middle}) rotate(-90)">{text(0, 0, "measured, µs")}</g>',
        line(1, ""),
        line(2, ' stroke-dasharray="1 2"'),
        line(0.5, ' stroke-dasharray="1 2"'),
    ]
    for power in range(math.ceil(low / math.log(10)), math.floor(high / math.log(10)) + 1):
        us = 10.0**power
        x, y = at(us, us).split()
        shapes.append(f'<path stroke="#000" d="M{x} {bottom}v4M{LEFT} {y}h-4"/>')
        shapes.append(text(x, bottom + 15, f"{us:,g}"))
        shapes.append(text(LEFT - 7, y, f"{us:,g}", 'text-anchor="end" dy=".35em"'))
    for i, (bound, (mark, style)) in enumerate(MARKS.items()):
        y = TOP + 14 + 14 * i
        points = [f"M{LEFT + 12} {y}{mark}"]
        points += [f"M{at(*point)}{mark}" for point in sorted(found[bound])]
        shapes.append(f'<path {style} d="{chr(10).join(textwrap.wrap(" ".join(points), 100))}"/>')
        shapes.append(text(LEFT + 20, y, f"bound by {bound}", 'dy=".35em"'))
    path.write_text("\n".join([*shapes, "</svg>", ""]), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="*", default=zoo())
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("--isa", default="")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    rows = []
    for model in arguments.models or zoo():
        rows += launches(program, model, arguments.isa)
    report(rows)
    if arguments.svg:
        draw(marks(rows), arguments.svg)


if __name__ == "__main__":
    main()
