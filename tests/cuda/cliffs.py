"""The cliff detector of GPUs: kinds of layers and ops, Lathe beside PyTorch eager and Inductor.

    python tests/cuda/cliffs.py [--dtype bf16] [--only PATTERN] [--share K/N] [--json OUT]

What is compared is the GPU's time and not the way there: eager's in a replay of a CUDA graph, and
the sum of Lathe's launches, as torch.compile's backend makes them. The whole call of mode
reduce-overhead from Python stands beside it, and that of Inductor for cases that eager beats by
more than a tenth, while --inductor seconds last. Results are compared before anything is timed, by
the rule of models.py. --share 2/3: the second of three parts of the grid. Exits with 1 when a
result is wrong or a case fails; what Lathe leaves to eager is listed and has no time of its own.
"""

import argparse
import json
import math
import pathlib
import re
import sys
import time

import numpy as np
import torch

import cliff_grid
import models

import lathe.backend  # noqa: E402

MIN_SECONDS, ROUNDS = 0.05, 7
SLOWER = 0.9


def tensors_of(args, dtype):
    torch.manual_seed(0)
    made = [torch.randn(a) if isinstance(a, tuple) else a() for a in args]
    return [t.to("cuda", dtype) if t.is_floating_point() else t.cuda() for t in made]


def recorded(module, tensors):
    """A replay of eager."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            module(*tensors)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module(*tensors)
    return graph.replay


def compiled(module, tensors, backend):
    torch._dynamo.reset()
    call = torch.compile(module, backend=backend, mode="reduce-overhead", dynamic=False)
    for _ in range(3):
        call(*tensors)
    return lambda: call(*tensors)


def measure(name, make, args, dtype):
    module = make().eval().to("cuda", dtype)
    tensors = tensors_of(args, dtype)
    row = {"case": name}
    theirs = module(*tensors)
    lathe.backend.clear_reports()
    before = time.perf_counter()
    mine = compiled(module, tensors, "lathe")
    row["first_s"] = time.perf_counter() - before
    reports = lathe.backend.reports()
    row["in_eager"] = sum(f.count for r in reports for f in r.fallbacks)
    row["kernels"] = sum(s.kernels or 0 for r in reports for s in r.segments)
    row |= models.judge(mine(), theirs, None)
    if not row["agrees"]:
        exact = models.exact_results(module, tensors)
        row |= models.judge(mine(), theirs, exact)
        module.to(dtype)
    calls = {"eager": recorded(module, tensors), "lathe": mine}
    samples = models.interleave(list(calls.values()), MIN_SECONDS, ROUNDS)
    for key, taken in zip(calls, samples):
        row[f"{key}_ms"] = float(np.median(taken))
    row["call_ms"] = row.pop("lathe_ms")
    launches = sum(launch["ms"] or 0 for launch in models.timed_launches(module, tensors))
    row["lathe_ms"] = row["call_ms"] if row["in_eager"] or not launches else launches
    row["ratio"] = row["eager_ms"] / row["lathe_ms"]
    return row


def ask_inductor(row, make, args, dtype):
    module, tensors = make().eval().to("cuda", dtype), tensors_of(args, dtype)
    call = compiled(module, tensors, "inductor")
    row["inductor_ms"] = float(np.median(models.interleave([call], MIN_SECONDS, ROUNDS)[0]))


def line_of(row):
    if "error" in row:
        return f"{row['case']:<48} FAILED: {row['error']}"
    text = f"{row['case']:<48} {row['eager_ms']:>8.4f} {row['lathe_ms']:>8.4f} "
    text += f"{row['ratio']:>6.2f}x, call {row['call_ms']:.4f}, {row['kernels']} kernels"
    if row["in_eager"]:
        text += f", {row['in_eager']} in eager"
    if "inductor_ms" in row:
        text += f", inductor {row['inductor_ms']:.4f} ({row['inductor_ms'] / row['call_ms']:.2f}x)"
    return text + ("" if row["agrees"] else f"  WRONG: {row['over_tolerance']:.1f} x tolerance")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dtype", choices=list(models.DTYPES), default="bf16")
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--share", default="1/1", help="which part of how many")
    parser.add_argument("--inductor", type=float, default=120, help="seconds for Inductor")
    parser.add_argument("--json", help="where to write the rows")
    arguments = parser.parse_args()
    dtype = models.DTYPES[arguments.dtype]
    part, parts = map(int, arguments.share.split("/"))
    asked = [case for case in cliff_grid.cases() if re.search(arguments.only, case[0])]
    asked, rows = asked[part - 1 :: parts], []
    with torch.no_grad():
        for name, make, args in asked:
            try:
                row = measure(name, make, args, dtype)
            except Exception as error:  # noqa: BLE001: the others shall run all the same
                row = {"case": name, "agrees": False, "error": str(error).split("\n")[0][:300]}
            rows.append(row)
            print(line_of(row), flush=True)
        end = time.perf_counter() + arguments.inductor
        timed = [(row, case) for row, case in zip(rows, asked) if "ratio" in row]
        for row, (_, make, args) in sorted(timed, key=lambda item: item[0]["ratio"]):
            if row["ratio"] > SLOWER or time.perf_counter() > end:
                break
            ask_inductor(row, make, args, dtype)
    timed = [row for row, _ in timed]
    print("\nthe slowest beside eager:")
    for row in sorted(timed, key=lambda row: row["ratio"])[:40]:
        print(line_of(row))
    geomean = math.exp(sum(math.log(row["ratio"]) for row in timed) / max(1, len(timed)))
    share = sum(row["ratio"] >= SLOWER for row in timed) / max(1, len(timed))
    print(f"\n{len(rows)} cases, geomean {geomean:.2f}x eager; at {SLOWER} or better: {share:.1%}; "
          f"wrong or failed: {sum(not row['agrees'] for row in rows)}")
    if arguments.json:
        text = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "rows": rows}
        pathlib.Path(arguments.json).write_text(json.dumps(text, indent=1) + "\n")
    return 0 if all(row["agrees"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
