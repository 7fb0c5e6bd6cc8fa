"""What a call through torch.compile costs beside what it computes, by turns in one process.

    python tests/bench/call_overhead.py [--backends none,eager,inductor,lathe] [--seconds 5]

Graphs so small that their arithmetic takes nothing: three ops on 64 numbers, the same with sizes
that vary, and a row of layers with 200 weights, which a backend may look at in every call.
Microseconds of a call: the median of blocks of calls, and their 10th to 90th percentile.
"""

import argparse
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "frontend/python"))

import lathe.backend  # noqa: E402, F401

CALLS = 100  # in a block


def three_ops(x):
    return torch.relu(x + 1) * 2


def layers(count):
    parts = [torch.nn.Linear(2, 2) for _ in range(count)]
    return torch.nn.Sequential(*parts).eval()


CASES = {
    "three ops": (three_ops, torch.randn(64), None),
    "three ops, any size": (three_ops, torch.randn(64), True),
    "200 weights": (layers(100), torch.randn(1, 2), None),
}


def compiled(function, backend, dynamic):
    if backend == "none":
        return function
    return torch.compile(function, backend=backend, dynamic=dynamic)


def measure(functions, x, seconds):
    """Microseconds of calls by backend, in blocks that alternate."""
    samples = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples[next(iter(samples))]) < 10:
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                function(x)
            samples[name].append((time.perf_counter() - start) / CALLS * 1e6)
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backends", default="none,eager,inductor,lathe")
    parser.add_argument("--seconds", type=float, default=5, help="of each case")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        for name, (function, x, dynamic) in CASES.items():
            torch._dynamo.reset()
            functions, expected = {}, function(x)
            for backend in arguments.backends.split(","):
                # Each has a code object of its own: Dynamo keeps what it compiled by code.
                own = function if isinstance(function, torch.nn.Module) else twin(function)
                functions[backend] = compiled(own, backend, dynamic)
                torch.testing.assert_close(functions[backend](x), expected)
            print(name)
            for backend, times in measure(functions, x, arguments.seconds).items():
                deciles = statistics.quantiles(times, n=10)
                print(
                    f"  {backend:10} {statistics.median(times):7.1f} us"
                    f"   {deciles[0]:.1f} to {deciles[-1]:.1f}"
                )


def twin(function):
    code = function.__code__.replace(co_name=function.__name__)
    return type(function)(code, function.__globals__, function.__name__)


if __name__ == "__main__":
    sys.exit(main())
