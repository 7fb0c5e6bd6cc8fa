"""Every op by itself, Lathe beside PyTorch eager: is each at the speed of memory or arithmetic?

    python tests/bench/ops.py [--only PATTERN] [--json OUT]

Each row of `./lathe list ops` and some operators that are said in others, at a realistic size, one
thread, in alternating blocks of one process. Results are compared before anything is timed; the
columns are those of cliffs.py. The calls are those of op_cases.py. Exits with 1 when a result is
wrong, or Lathe fails in another way than by refusing an operator. Needs PyTorch 2.13.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile

import torch
import torch.nn.functional as F  # noqa: F401: of calls

import cliffs
import op_cases

WORST = 20
PLACES = "abcdefgh"


class Call(torch.nn.Module):
    def __init__(self, text):
        super().__init__()
        self.function = eval(f"lambda {','.join(PLACES)}: {text}", globals())  # noqa: S307: ours

    def forward(self, *args):
        result = self.function(*args, *[None] * (len(PLACES) - len(args)))
        return tuple(result) if isinstance(result, (tuple, list)) else result


def operand(spec):
    """What makes a tensor; of f32 where a shape stands alone."""
    word, shape = spec if isinstance(spec[-1], tuple) else ("", spec)
    if isinstance(word, tuple):
        return lambda: torch.randint(0, word[1], shape)
    return {
        "": lambda: torch.randn(shape),
        "positive": lambda: torch.rand(shape) + 0.1,
        "unit": lambda: torch.rand(shape) * 1.98 - 0.99,
        "bool": lambda: torch.rand(shape) > 0.5,
        "weight": lambda: torch.randn(shape) / shape[-1] ** 0.5,
        "order": lambda: torch.randn(shape).sort().values,
    }[word]


def name_of(text, operands):
    shapes = ("x".join(map(str, o[-1] if isinstance(o[-1], tuple) else o)) for o in operands)
    return f"{text} {' '.join(dict.fromkeys(shapes))}"


def cases(only):
    for op, calls in {**op_cases.ROWS, **op_cases.COMPOSITES}.items():
        for text, operands in calls:
            if re.search(only, f"{op} {text}"):
                yield op, text, operands


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="regular expression that an op or call matches")
    parser.add_argument("--json", help="where to write the rows")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"Lathe beside PyTorch {torch.__version__} eager, one thread; below 1: Lathe is slower")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.pt2"
        machine = cliffs.Machine(path)
        print(f"{'case':<46} {'eager ms':>8} {'Lathe ms':>8} {'ratio':>8} {'10-90 %':>18} "
              f"{'inside':>8} {'limit ms':>8} {'of it':>6}")
        for op, text, operands in cases(arguments.only):
            make = lambda text=text: Call(text)  # noqa: E731
            row = cliffs.measure(name_of(text, operands), make, list(map(operand, operands)),
                                 machine, path)
            rows.append(row | {"family": op})
            print(cliffs.line_of(row), flush=True)
    timed = sorted((r for r in rows if "refused" not in r), key=lambda row: row["ratio"])
    if timed:
        print(f"\nThe worst of {len(timed)}, geomean {cliffs.geomean(timed):.2f}x, "
              f"no slower {cliffs.share(timed):.1%}:")
    for row in timed[:WORST]:
        print(cliffs.line_of(row))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return 0 if all(row["agrees"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
