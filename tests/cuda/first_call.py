"""How long one model's first call takes in a fresh process with empty caches.

    python tests/cuda/first_call.py lathe|inductor|capture|exported MODEL

Prints seconds, from the module on the GPU to the first result: of torch.compile with Lathe's or
Inductor's backend, of what PyTorch itself takes of both before a backend is asked ("capture":
Dynamo, with a backend that runs its graph as it is), and of lathe.load with an exported file.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "frontend/python"), str(ROOT / "tests/cuda")]
CACHES = ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")


def seconds_of(who, name):
    """Of a process of its own; an error with what it said when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {cache: os.path.join(folder, cache) for cache in CACHES}
        command = [sys.executable, __file__, who, name]
        done = subprocess.run(command, env={**os.environ, **caches}, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        return float(done.stdout.split()[-1])


def main(who, name):
    import torch

    import workloads

    module, tensors = workloads.make(name, torch.bfloat16)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        if who == "exported":
            import lathe

            path = os.path.join(folder, "model.pt2")
            torch.export.save(torch.export.export(module, tensors, strict=False), path)
        torch.cuda.synchronize()
        before = time.perf_counter()
        if who == "exported":
            call = lathe.load(path, target="cuda", mode="reduce-overhead")
        elif who == "capture":
            call = torch.compile(module, backend="eager")
        else:
            if who == "lathe":
                import lathe.backend  # noqa: F401
            call = torch.compile(module, backend=who, mode="reduce-overhead")
        call(*tensors)
        torch.cuda.synchronize()
        print(time.perf_counter() - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
