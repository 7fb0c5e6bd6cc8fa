"""How long a backend's call takes beside eager's, by turns in one process.

On the CPU that is time of the process: all its threads', and none of what else the machine does.
"""

import statistics
import time

import torch

SECONDS = 1.0  # of pairs, after a warm-up
FEWEST, MOST = 7, 40  # pairs
WARM_UPS = 2


def measure(eager, compiled, args, kwargs):
    """{"eager_ms", "ms": medians, "speedup": [10th percentile, median, 90th] of eager's time over
    the backend's in each pair}
    """
    pairs = []
    with torch.no_grad():
        for _ in range(WARM_UPS):
            eager(*args, **kwargs), compiled(*args, **kwargs)
        until = time.perf_counter() + SECONDS
        while len(pairs) < FEWEST or (len(pairs) < MOST and time.perf_counter() < until):
            order = (eager, compiled) if len(pairs) % 2 else (compiled, eager)
            taken = {call: seconds(call, args, kwargs) for call in order}
            pairs.append((taken[eager], taken[compiled]))
    ratios = sorted(theirs / own for theirs, own in pairs)
    tenth = len(ratios) // 10
    speedup = ratios[tenth], statistics.median(ratios), ratios[-1 - tenth]
    medians = (1e3 * statistics.median(times) for times in zip(*pairs))
    return dict(zip(("eager_ms", "ms"), (round(ms, 4) for ms in medians)),
                speedup=[round(ratio, 3) for ratio in speedup])


def seconds(call, args, kwargs):
    if not torch.cuda.is_available():
        start = time.process_time()
        call(*args, **kwargs)
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    call(*args, **kwargs)
    torch.cuda.synchronize()
    return time.perf_counter() - start
