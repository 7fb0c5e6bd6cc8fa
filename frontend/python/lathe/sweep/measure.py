"""Times and memory of calls in this process."""

import ctypes
import gc
import re
import time

REST_SECONDS = 20e-3  # OpenMP's threads spin for some milliseconds after their last region
MAX_CALLS = 100_000  # of a sample


def interleave(calls, samples, warmup, min_ms, threads, wait, deadline):
    """Milliseconds of each call, by name: `samples` of each, the i-th ones next to each other.

    Sides take turns in the order A B, B A, so that what drifts meets all alike. A sample is the
    mean of as many calls as take min_ms. With several threads a sample begins with a rest and a
    call that is not counted: threads of one side may spin on the cores of the other. wait: lets
    what was launched on a device finish. deadline: of time.monotonic; past it no round begins.
    """
    for _ in range(warmup):
        for call in calls.values():
            call()
    wait()
    counts = {name: calls_for(call, min_ms, wait) for name, call in calls.items()}
    found = {name: [] for name in calls}
    order = list(calls)
    gc.collect()
    gc.disable()
    try:
        for _ in range(samples):
            for name in order:
                found[name].append(sample(calls[name], counts[name], threads, wait))
            order.reverse()
            if time.monotonic() > deadline:
                break
    finally:
        gc.enable()
    return found


def calls_for(call, min_ms, wait):
    """How many calls take min_ms; at least one."""
    count, spent = 1, milliseconds(call, wait)
    while spent < min_ms / 2 and count < MAX_CALLS:
        count *= 2
        spent = sum(milliseconds(call, wait) for _ in range(count))
    return max(1, min(MAX_CALLS, round(count * min_ms / max(spent, 1e-6))))


def sample(call, count, threads, wait):
    if threads > 1:
        time.sleep(REST_SECONDS)
        call()
        wait()
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return (time.perf_counter() - start) * 1e3 / count


def milliseconds(call, wait):
    start = time.perf_counter()
    call()
    wait()
    return (time.perf_counter() - start) * 1e3


def resident(word="VmRSS"):
    """Bytes of this process that are in memory now (VmRSS), at most (VmHWM), or mapped (VmSize)."""
    with open("/proc/self/status") as file:
        return int(re.search(rf"^{word}:\s+(\d+) kB", file.read(), re.M)[1]) * 1024


def peak_bytes(call, before, target, wait):
    """The most memory that a call which is not the first one holds.

    On the CPU, what the process holds beyond `before`, its resident bytes before the model was
    there: weights, arguments, compiled code, copies of weights and what the call allocates. On
    CUDA, what PyTorch's allocator hands out.
    """
    if target == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
        call()
        wait()
        return torch.cuda.max_memory_allocated()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    call()
    return max(0, resident("VmHWM") - before)
