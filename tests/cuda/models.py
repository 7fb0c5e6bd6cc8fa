"""Models on a GPU: Lathe beside PyTorch in one process, through the C ABI, checked and timed.

    python tests/cuda/models.py f32|bf16|f16|time|compile|bandwidth|rows|more|families|kernels
        [--models A,B] [--json OUT] [--dtype f32] [--jobs N]

f32, bf16 and f16 hold the zoo's eight graphs, with the weights of one seed, against PyTorch eager.
time interleaves eager, Lathe and torch.compile on four models at their usual batch sizes, in bf16;
compile sets their first calls in fresh processes beside torch.compile's. bandwidth sets pointwise
and normalisation kernels beside a copy. rows asks more models through torch.compile, with Lathe's
and with Inductor's backend; kernels says where Lathe's time goes in them. Needs PyTorch with CUDA.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("frontend/python", "tests/bench", "tests/cuda")]

import numpy as np  # noqa: E402
import torch  # noqa: E402

import eager  # noqa: E402
import family_models  # noqa: E402
import first_call  # noqa: E402
import lathe  # noqa: E402
import lathe.backend  # noqa: E402
import more_models  # noqa: E402
import workloads  # noqa: E402
from lathe import random  # noqa: E402

SEED = 0
ZOO = ("lerp", "ffnn", "resnet18", "resnet50", "bert_base", "gpt2", "unet", "vit_b_16")
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
NUMPY_DTYPES = {"f32": "float32", "i64": "int64", "bool": "bool"}
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 1e-3}
# Models whose first calls are timed, and how often.
FIRST_CALLS = {**dict.fromkeys(workloads.USUAL, 2), **dict.fromkeys(workloads.ZOO_MAKERS, 1)}
BLOCK_SECONDS = 20e-3
LOCK = "LATHE_TIMING_LOCK"


def results(value):
    """Tensors of a nested result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in results(item)] if isinstance(value, (list, tuple)) else []


def rms(tensor):
    return tensor.double().square().mean().sqrt().item()


def judge(mine, theirs, exact):
    """Close to eager, or no further from the exact result than 3 times eager: in the mean, which is
    PyTorch's rule, and at the worst element, which a mean of many hides."""
    worst, ratio = 0.0, 0.0
    for i, (a, b) in enumerate(zip(results(mine), results(theirs), strict=True)):
        tolerance = TOLERANCES.get(b.dtype, 1e-4)
        x, y = a.double(), b.double()
        allowed = (tolerance * (y.abs() + rms(y))).clamp_min(1e-30)
        error = ((x - y).abs() / allowed).max().item() if y.numel() else 0.0
        error = error if np.isfinite(error) else float("inf")
        worst = max(worst, error)
        if error > 1 and exact is not None:
            best = results(exact)[i].double()
            for size in (rms, lambda t: t.abs().max().item()):
                times = size(x - best) / max(size(y - best), 1e-30)
                ratio = max(ratio, times if np.isfinite(times) else float("inf"))
        elif error > 1:
            ratio = float("inf")
    agrees = worst <= 1 or ratio <= 3
    return {"agrees": bool(agrees), "over_tolerance": worst, "error_ratio": ratio}


def cuda_inputs(model):
    tensors = []
    for info in model.info["inputs"]:
        array = random.input(info["name"], NUMPY_DTYPES[info["dtype"]], info["shape"], SEED)
        tensors.append(torch.from_numpy(np.ascontiguousarray(array)).cuda())
    return tensors


def exact_results(module, tensors):
    """The same graph in float64, or float32 where it names its dtypes; none when neither runs."""
    for dtype in (torch.float64, torch.float32):
        try:
            wide = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
            return module.to(dtype)(*wide)
        except Exception:  # says which dtype was expected
            continue
    return None


def zoo_model(name, dtype, folder):
    """The eager module, its inputs, and the same in Lathe."""
    path = ROOT / f"tests/zoo/{name}.aten.json.gz"
    if name == "gpt2" and dtype is not torch.float32:
        # Its graph names f32 for its masks, which its layers in halves refuse.
        module, tensors = workloads.make("gpt2_b1", dtype)
    else:
        module = workloads.on_gpu(eager.load(path, SEED)).to(dtype)
        model = lathe.load(path, target="cuda", weights=f"random:{SEED}")
        tensors = [t.to(dtype) if t.is_floating_point() else t for t in cuda_inputs(model)]
        if dtype is torch.float32:
            return module, tensors, model
    path = pathlib.Path(folder) / f"{name}.pt2"
    torch.export.save(torch.export.export(module, tuple(tensors), strict=False), path)
    return module, tensors, lathe.load(path, target="cuda")


def check_zoo(name, dtype, folder):
    module, tensors, model = zoo_model(name, DTYPES[dtype], folder)
    theirs = module(*tensors)
    row = {"model": name, "dtype": dtype}
    mine = [model(*tensors) for _ in range(2)][-1]
    torch.cuda.synchronize()
    calls = [lambda: model(*tensors), lambda: module(*tensors)]
    row["lathe_ms"], row["eager_ms"] = (float(np.median(s)) for s in interleave(calls, 0.3, 5))
    row.update({key: model.info[key] for key in ("kernels", "compile_ms", "load_ms")})
    row.update(judge(mine, theirs, exact_results(module, tensors)))
    return row


# ---- times --------------------------------------------------------------------------------------


@contextlib.contextmanager
def turn():
    """While no other process of this run is being timed."""
    path = os.environ.get(LOCK)
    with open(path, "w") if path else contextlib.nullcontext() as file:
        if file:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def interleave(calls, min_seconds, min_rounds=15):
    """Milliseconds of each call, in alternating blocks that end when the GPU is done."""
    with turn():
        return interleave_alone(calls, min_seconds, min_rounds)


def interleave_alone(calls, min_seconds, min_rounds):
    lengths = []
    for call in calls:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        before = time.perf_counter()
        call()
        torch.cuda.synchronize()
        lengths.append(max(1, min(200, int(BLOCK_SECONDS / (time.perf_counter() - before)))))
    samples = [[] for _ in calls]
    start = time.perf_counter()
    while len(samples[0]) < min_rounds or time.perf_counter() - start < min_seconds:
        for call, length, taken in zip(calls, lengths, samples):
            call()
            torch.cuda.synchronize()
            before = time.perf_counter()
            for _ in range(length):
                call()
            torch.cuda.synchronize()
            taken.append((time.perf_counter() - before) * 1e3 / length)
    return samples


def time_model(name, folder):
    module, tensors = workloads.make(name, torch.bfloat16)
    path = pathlib.Path(folder) / f"{name}.pt2"
    torch.export.save(torch.export.export(module, tensors, strict=False), path)
    plain = lathe.load(path, target="cuda")
    captured = lathe.load(path, target="cuda", mode="reduce-overhead")
    theirs = module(*tensors)
    row = {"model": name, "dtype": "bfloat16"}
    row.update({key: plain.info[key] for key in ("kernels", "compile_ms", "load_ms")})
    exact = exact_results(module, tensors)
    row.update(judge(plain(*tensors), theirs, exact))
    replayed = judge([captured(*tensors) for _ in range(2)][-1], theirs, exact)
    row["agrees"] = row["agrees"] and replayed["agrees"]
    row["captured"] = replayed
    module = module.to(torch.bfloat16)
    compiled = torch.compile(module, mode="reduce-overhead")
    for _ in range(3):
        compiled(*tensors)
    torch.cuda.synchronize()
    calls = {
        "eager": lambda: module(*tensors),
        "lathe": lambda: plain(*tensors),
        "lathe_reduce_overhead": lambda: captured(*tensors),
        "inductor_reduce_overhead": lambda: compiled(*tensors),
    }
    for key, samples in zip(calls, interleave(list(calls.values()), 2)):
        row[f"{key}_ms"] = float(np.median(samples))
    return row


def row_calls(name, dtype, backends):
    """(module, tensors, what each backend compiled in mode reduce-overhead, seconds of first
    calls)."""
    module, tensors = workloads.make(name, dtype)
    calls, seconds = {}, {}
    torch._dynamo.reset()
    for backend in backends:
        before = time.perf_counter()
        compiled = torch.compile(module, backend=backend, mode="reduce-overhead", dynamic=False)
        calls[backend] = compiled
        compiled(*tensors)
        torch.cuda.synchronize()
        seconds[backend] = time.perf_counter() - before
        for _ in range(3):
            compiled(*tensors)
    return module, tensors, calls, seconds


def measure_row(name, folder, dtype, backends=("lathe", "inductor")):
    del folder
    lathe.backend.clear_reports()
    module, tensors, calls, seconds = row_calls(name, dtype, backends)
    row = {"model": name, "dtype": str(dtype)}
    row.update({f"{backend}_first_s": value for backend, value in seconds.items()})
    theirs = module(*tensors)
    mine = calls["lathe"](*tensors)
    timed = {"eager": lambda: module(*tensors)}
    timed |= {key: (lambda call=call: call(*tensors)) for key, call in calls.items()}
    for key, samples in zip(timed, interleave(list(timed.values()), 1, 9)):
        row[f"{key}_ms"] = float(np.median(samples))
    row["in_eager"] = sum(f.count for r in lathe.backend.reports() for f in r.fallbacks)
    row["graphs"] = len(lathe.backend.reports())
    row["kernels"] = sum(s.kernels or 0 for r in lathe.backend.reports() for s in r.segments)
    row.update(judge(mine, theirs, exact_results(module, tensors)))
    return row


def timed_launches(module, tensors):
    """Lathe's launches of a call, each with its best time of five."""
    torch._dynamo.reset()
    lathe.backend.clear_reports()
    call = torch.compile(module, backend="lathe", dynamic=False)
    call(*tensors)
    lathe.backend.set_timing(True)
    for _ in range(5):
        call(*tensors)
    lathe.backend.set_timing(False)
    return [launch for report in lathe.backend.reports() for launch in report.kernels]


def explain_row(name, folder, dtype):
    """Where Lathe's time goes: its longest kernels, each with the least that it may move."""
    row = measure_row(name, folder, dtype, ("lathe",))
    rows = {}
    for launch in timed_launches(*workloads.make(name, dtype)):
        key = launch["label"], launch["kind"]
        count, ms, moved = rows.get(key, (0, 0.0, 0))
        rows[key] = count + 1, ms + (launch["ms"] or 0), moved + launch["bytes"]
    longest = sorted(rows.items(), key=lambda item: -item[1][1])
    row["launches_ms"] = sum(ms for _, (_, ms, _) in longest)
    row["longest"] = [
        f"{label} x{count} {kind}: {ms * 1e3:.0f} us, {moved / 1e6:.1f} MB"
        for (label, kind), (count, ms, moved) in longest[:12]
    ]
    return row


def compile_model(name, folder):
    """Seconds to the first result, in turns; the ratio is of the slowest and the fastest."""
    del folder
    who = ("lathe", "inductor", "capture", "exported")
    samples = {key: [] for key in who}
    for _ in range(FIRST_CALLS[name]):
        for key in who:
            samples[key].append(first_call.seconds_of(key, name))
    row = {"model": name, **{f"{key}_s": sorted(samples[key]) for key in who}}
    row["least_ratio"] = min(samples["inductor"]) / max(samples["lathe"])
    return row


LANES_IR = {
    "add": "%0 = add(%x, %y)",
    "gelu": "%0 = gelu(%x)",
    "layer_norm": "%0 = layer_norm(%x, %w, %b) {{normalized_shape = [{columns}]}}",
    "softmax": "%0 = softmax(%x) {{dim = -1}}",
    "bias_relu": "%1 = add(%x, %b)\n  %0 = relu(%1)",
}


def bandwidth(name, folder):
    """One kernel on 256 MB and more, beside a copy of as many bytes in the same rounds."""
    rows, columns = 65536, 1024
    operands = {"add": "xy", "gelu": "x", "layer_norm": "xwb", "softmax": "x", "bias_relu": "xb"}
    row = {"kernel": name}
    for dtype, spelling in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        size = rows * (2 if dtype is torch.bfloat16 else 1)
        shapes = {"x": (size, columns), "y": (size, columns), "w": (columns,), "b": (columns,)}
        types = {k: f"{spelling}[{', '.join(map(str, v))}]" for k, v in shapes.items()}
        params = ", ".join(f"%{k}: {types[k]}" for k in operands[name])
        text = LANES_IR[name].replace("{{", "{").replace("}}", "}")
        text = text.replace("{columns}", str(columns))
        path = pathlib.Path(folder) / f"{name}_{spelling}.lathe"
        path.write_text(f"func @main({params}) -> {types['x']} {{\n  {text}\n  return %0\n}}\n")
        model = lathe.load(path, target="cuda")
        tensors = [torch.randn(shapes[k], device="cuda").to(dtype) for k in operands[name]]
        moved = sum(t.numel() * t.element_size() for t in tensors)
        moved += tensors[0].numel() * tensors[0].element_size()
        source = torch.randn(moved // 8, device="cuda")
        target = torch.empty_like(source)
        calls = [lambda: model(*tensors), lambda: target.copy_(source)]
        mine, copy = (float(np.median(s)) for s in interleave(calls, 0.2, 7))
        row[f"{spelling}_tb_s"] = moved / mine * 1e-9
        row[f"{spelling}_copy_tb_s"] = moved / copy * 1e-9
        row[f"{spelling}_share"] = copy / mine
    return row


PHASES = {
    **{dtype: (ZOO, lambda name, folder, d=dtype: check_zoo(name, d, folder)) for dtype in DTYPES},
    "time": (workloads.USUAL, time_model),
    "compile": (FIRST_CALLS, compile_model),
    "bandwidth": (LANES_IR, bandwidth),
    "rows": (workloads.MAKERS, measure_row),
    "more": (more_models.MAKERS, measure_row),
    "families": (family_models.MAKERS, measure_row),
    "kernels": (workloads.MAKERS, explain_row),
}
WITH_DTYPE = ("rows", "more", "families", "kernels")


def measured(measure, name):
    """The row of a model, or what went wrong: the others shall run all the same."""
    before = time.perf_counter()
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        try:
            row = measure(name, folder)
        except Exception as error:
            last = traceback.format_exc().splitlines()[-6:]
            row = {"model": name, "agrees": False, "error": str(error)[:2000], "where": last}
    row["seconds"] = round(time.perf_counter() - before, 1)
    return row


def in_processes(arguments, names):
    """Rows of models as they come, from as many processes as `jobs` says."""
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        environment = {**os.environ, LOCK: os.path.join(folder, "lock")}

        def ask(name):
            path = pathlib.Path(folder, f"{name}.json")
            command = [sys.executable, __file__, arguments.phase, "--models", name,
                       "--dtype", arguments.dtype, "--json", path]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if path.exists():
                return json.loads(path.read_text())["rows"][0]
            return {"model": name, "agrees": False, "error": done.stderr[-2000:]}

        for task in concurrent.futures.as_completed(pool.submit(ask, name) for name in names):
            yield task.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("phase", choices=list(PHASES))
    parser.add_argument("--models", help="which, comma-separated; all unless given")
    parser.add_argument("--json", help="where to write the rows")
    parser.add_argument("--dtype", choices=list(DTYPES), default="bf16",
                        help=f"of {', '.join(WITH_DTYPE)}")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time")
    arguments = parser.parse_args()
    names, measure = PHASES[arguments.phase]
    if arguments.phase in WITH_DTYPE:
        measure = functools.partial(measure, dtype=DTYPES[arguments.dtype])
    if arguments.models:
        names = arguments.models.split(",")
    rows = []
    for row in (in_processes(arguments, names) if arguments.jobs > 1
                else (measured(measure, name) for name in names)):
        rows.append(row)
        print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}),
              flush=True)
        if arguments.json:
            text = {"phase": arguments.phase, "torch": torch.__version__,
                    "gpu": torch.cuda.get_device_name(), "rows": rows}
            pathlib.Path(arguments.json).write_text(json.dumps(text, indent=1) + "\n")
    return 0 if all(row.get("agrees", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
