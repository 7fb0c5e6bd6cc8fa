"""The cliff detector: every kind of op over a grid of shapes, Lathe beside PyTorch eager.

    python tests/bench/cliffs.py [--only PATTERN] [--quick] [--json OUT]

One thread, in alternating blocks of one process, small modules that torch.export has written. The
clock is the thread's own, so that other programs cost little of the precision. Results are compared
before anything is timed. The ratio is eager's median over Lathe's, below 1 where Lathe is slower;
its range is that of neighbouring samples, 10th to 90th percentile. Both are whole calls from
Python; `inside` is the least that Lathe's library takes of one, since a call of a small kernel is
mostly the way there. The worst are listed apart by whether that alone is to blame.

`limit` is the least time that the machine allows: the larger of the case's FLOPs, as Lathe counts
them, at the rate of a large f32 product, PyTorch's or Lathe's, whichever is faster, and of the
bytes of its arguments, weights and results at the bandwidth of as large a copy or sum. Both are
measured at the start.

A case that torch.export or Lathe refuses, as not supported, is listed and is no error. Exits with 1
when a result is wrong or Lathe fails in another way. The grid is that of cliff_cases.py. Needs
PyTorch 2.13.
"""

import argparse
import collections
import json
import math
import pathlib
import re
import sys
import tempfile
import time
import warnings

import torch
import torch.nn as nn

from peers import TOLERANCE, interleave, largest_error, results, row_of

import cliff_cases
import lathe

TOLERANCES = {torch.bfloat16: 3e-2, torch.float16: 4e-3}
BLOCK_SECONDS = 5e-3
ROUNDS = 9
SLOW_SECONDS = 50e-3  # one call; a case this slow takes fewer rounds
SLOW_ROUNDS = 3
QUICK_STEP = 8  # --quick takes one case of so many
WORST = 40
REFUSAL = re.compile(r"torch\.export|aten\.|error\[unsupported")  # any other is a mistake of Lathe


def seconds_of(call, least=0.05):
    """The best time of one call."""
    best, start = math.inf, time.perf_counter()
    while time.perf_counter() - start < least:
        before = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - before)
    return best


class Machine:
    """What one thread can do at best."""

    def __init__(self, path):
        size = 768
        x, layer = torch.randn(size, size), nn.Linear(size, size, bias=False)
        model = compile_case(layer, (x,), path)
        with torch.inference_mode():
            least = min(seconds_of(lambda: call(x), 0.3) for call in (layer, model))
        self.flops = 2 * size**3 / least
        self.bandwidths = {}
        for total in (2**15, 2**18, 2**20, 2**22, 2**24, 2**27):
            whole = torch.zeros(total // 4)
            source, target = whole.chunk(2)
            calls = (lambda: target.copy_(source), whole.sum)
            self.bandwidths[total] = total / min(seconds_of(call, 0.1) for call in calls)

    def limit_ms(self, flops, count):
        """Of so many FLOPs and bytes; the bandwidth is that of the next larger copy measured."""
        size = next((s for s in self.bandwidths if s >= count), max(self.bandwidths))
        return max(flops / self.flops, count / self.bandwidths[size]) * 1e3


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def traffic(module, args, result):
    """The bytes that any way of computing it must move."""
    written = bytes_of(results(result))
    if any(isinstance(part, nn.Embedding) for part in module.modules()):
        return bytes_of(args) + 2 * written  # the rows that are asked for, not the table
    return bytes_of([*args, *module.parameters(), *module.buffers()]) + written


def compile_case(module, args, path):
    """A loaded model, or what refused it."""
    try:
        torch.export.save(torch.export.export(module, args), path)
    except Exception as error:  # noqa: BLE001: export raises whatever its tracing has met
        return f"torch.export: {str(error).strip().splitlines()[0]}"
    try:
        return lathe.load(path, threads=1)
    except lathe.LatheError as error:
        # The ops stand below the first line, which begins with a place.
        message = re.sub(r"^\S+: (?=error)", "", str(error).splitlines()[0])
        return ", ".join(re.findall(r"aten\.\S+", str(error))) or message


def tolerance_of(tensors):
    return max([TOLERANCE, *(TOLERANCES.get(t.dtype, 0) for t in tensors)])


def measure(name, make, args, machine, path):
    """One row."""
    torch.manual_seed(0)
    module = make().eval()
    args = tuple(torch.randn(a) if isinstance(a, tuple) else a() for a in args)
    row = {"case": name, "family": name.split()[0]}
    with torch.inference_mode():
        expected = module(*args)
    model = compile_case(module, args, path)
    if isinstance(model, str):
        return row | {"refused": model, "agrees": bool(REFUSAL.match(model))}
    with torch.inference_mode():
        before = time.perf_counter()
        result = model(*args)
        rounds = SLOW_ROUNDS if time.perf_counter() - before > SLOW_SECONDS else ROUNDS
        error = largest_error(result, expected, tolerance_of([*args, *results(expected)]))
        calls = [lambda: model(*args), lambda: module(*args)]
        mine, theirs = interleave(calls, 0, rounds, BLOCK_SECONDS, 0, time.thread_time)
        inside = []
        for _ in range(rounds):
            model(*args)
            inside.append(model.last_run_ms)
    row |= row_of(name, 1, {"lathe": mine, "eager": theirs}, ratio=("eager", "lathe"))
    # By the clock of the wall, which may stand above the call's where another program had the core.
    inside_ms = min(*inside, row["lathe_ms"])
    flops, count = model.info["gflop"] * 1e9, traffic(module, args, expected)
    return row | {
        "inside_ms": inside_ms, "limit_ms": machine.limit_ms(flops, count),
        "flops": flops, "bytes": count, "kernels": model.info["kernels"], "error": error,
        "agrees": error <= 1,
    }


def line_of(row):
    if "refused" in row:
        verdict = "refused" if row["agrees"] else "BROKEN"
        return f"{row['case']:<46} {verdict}: {row['refused']}"
    spread = f"{row['ratio_p10']:.2g} to {row['ratio_p90']:.2g}"
    verdict = "" if row["agrees"] else f"  WRONG: {row['error']:.1f} x the tolerance"
    return (
        f"{row['case']:<46} {row['eager_ms']:>8.4f} {row['lathe_ms']:>8.4f} {row['ratio']:>7.2g}x "
        f"{spread:>18} {row['inside_ms']:>8.4f} {row['limit_ms']:>8.4f} "
        f"{row['limit_ms'] / row['lathe_ms']:>6.0%}{verdict}"
    )


def geomean(rows):
    return math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))


def share(rows, time_of="lathe_ms"):
    """How many are no slower than eager."""
    return sum(row[time_of] <= row["eager_ms"] for row in rows) / len(rows)


def print_worst(title, rows):
    worst = sorted(rows, key=lambda row: row["ratio"])[:WORST]
    print(f"\n{title}: {len(rows)}, of which the {len(worst)} worst:")
    for row in worst:
        print(line_of(row))


def summarize(rows):
    timed = [row for row in rows if "refused" not in row]
    refused = [row for row in rows if "refused" in row]
    slower = [row for row in timed if row["ratio"] < 1]
    print_worst("Slower inside the library", [r for r in slower if r["inside_ms"] > r["eager_ms"]])
    print_worst("Slower by the way there", [r for r in slower if r["inside_ms"] <= r["eager_ms"]])
    families = collections.defaultdict(list)
    for row in timed:
        families[row["family"]].append(row)
    print(f"\n{'family':<14} {'cases':>6} {'geomean':>8} {'worst':>7} {'no slower':>10} "
          f"{'inside':>7}")
    for family, members in sorted(families.items(), key=lambda item: geomean(item[1])):
        worst = min(row["ratio"] for row in members)
        print(f"{family:<14} {len(members):>6} {geomean(members):>7.2g}x {worst:>6.2g}x "
              f"{share(members):>10.0%} {share(members, 'inside_ms'):>7.0%}")
    print(f"\nRefused: {len(refused)}")
    for row in refused:
        print(line_of(row))
    if timed:
        print(f"\n{len(timed)} cases, geomean {geomean(timed):.2f}x; no slower than eager: "
              f"{share(timed):.1%}, inside the library {share(timed, 'inside_ms'):.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="regular expression that a case's name matches")
    parser.add_argument("--quick", action="store_true", help=f"one case of {QUICK_STEP}")
    parser.add_argument("--json", help="where to write the rows")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # Of recurrent layers, whose list of weights is made anew while they are traced.
    warnings.filterwarnings("ignore", message=".*were assigned during export")
    chosen = [case for case in cliff_cases.cases() if re.search(arguments.only, case[0])]
    chosen = chosen[:: QUICK_STEP if arguments.quick else 1]
    print(f"Lathe beside PyTorch {torch.__version__} eager, one thread; below 1: Lathe is slower")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.pt2"
        machine = Machine(path)
        bandwidths = ", ".join(f"{v / 1e9:.0f}" for v in machine.bandwidths.values())
        print(f"{machine.flops / 1e9:.0f} GFLOP/s; 32 KiB to 128 MiB at {bandwidths} GB/s")
        print(f"{'case':<46} {'eager ms':>8} {'Lathe ms':>8} {'ratio':>8} {'10-90 %':>18} "
              f"{'inside':>8} {'limit ms':>8} {'of it':>6}")
        for case in chosen:
            rows.append(measure(*case, machine, path))
            print(line_of(rows[-1]), flush=True)
    summarize(rows)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return 0 if all(row["agrees"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
