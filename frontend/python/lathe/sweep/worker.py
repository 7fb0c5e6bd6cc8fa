"""One part of one job in a process of its own: python -m lathe.sweep.worker TASK.json.

The part "measure" checks a candidate against eager and times both; the part "warm" takes the first
call again, with the caches that the first left. What comes out is written to the task's `result`
file as a whole, and is on the disk when this process ends. A process that ends without it crashed.
"""

import contextlib
import copy
import ctypes
import faulthandler
import json
import math
import os
import pathlib
import resource
import signal
import sys
import time
import traceback

from lathe.sweep import backends, journal, measure, models

PR_SET_PDEATHSIG = 1
PYTORCH_BYTES = 6 << 30  # of addresses, for libraries and threads; little of it is ever memory
DETAIL_LINES = 30
SAMPLING_SHARE = 0.8  # of the job's seconds, after which no further sample is taken
SEED = 0


class Failed(Exception):
    """A job's status and its reason, raised from what went wrong."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


def main():
    began = time.monotonic()
    task = json.loads(pathlib.Path(sys.argv[1]).read_text())
    die_with(task["parent"])
    faulthandler.enable()
    if task["settings"]["target"] == "cpu":
        limit_memory(task["limits"]["memory_gib"])
    deadline = began + task["limits"]["seconds"] * SAMPLING_SHARE
    try:
        found = PARTS[task["part"]](task, deadline)
    except (Exception, SystemExit) as error:
        unlimited = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (unlimited, unlimited))  # for what is written now
        found = failure(error)
        if found["status"] == "out_of_memory":
            limit = task["limits"]["memory_gib"]
            found["reason"] += f" (limits.memory_gib is {limit:g})"
    found |= {"job": task["job"], "environment": task["environment"], "part": task["part"],
              "seconds": time.monotonic() - began}
    journal.write_whole(pathlib.Path(task["result"]), journal.encode(finite(found)))
    sys.stdout.flush()
    os._exit(0)  # whatever threads and exit handlers a backend has left


def die_with(parent):
    """Lets the kernel end this process when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def limit_memory(gib):
    """Makes allocations beyond the limit fail, which is an error that can be caught."""
    limit = measure.resident("VmSize") + PYTORCH_BYTES + int(gib * 2**30)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def finite(value):
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextlib.contextmanager
def phase(status, prefix=""):
    """What fails within has this status, unless it ran out of memory or is refused."""
    try:
        yield
    except (Failed, backends.Refused):
        raise
    except (Exception, SystemExit) as error:
        raise Failed(status, prefix + sentence(error)) from error


def failure(error):
    """The record of what was raised."""
    chain = causes(error)
    status, reason = "fail_to_run", sentence(error)
    if isinstance(error, Failed):
        status, reason = error.status, error.reason
    if any(isinstance(e, backends.Refused) or type(e).__name__ in REFUSALS for e in chain):
        status = "refused"
    if any(is_out_of_memory(e) for e in chain):
        status = "out_of_memory"
    if isinstance(error, backends.Refused):
        return {"status": status, "reason": str(error)}
    shown = error.__cause__ if isinstance(error, Failed) and error.__cause__ else error
    lines = "".join(traceback.format_exception(shown)).splitlines()
    return {"status": status, "reason": reason, "details": "\n".join(lines[-DETAIL_LINES:])}


# Of torch._dynamo.exc and lathe: what says no before it has begun.
REFUSALS = ("Unsupported", "FailOnRecompileLimitHit", "UserError", "ConstraintViolationError",
            "LatheError")


def causes(error):
    """An exception and what it was raised from, at any depth."""
    found = []
    while error is not None and error not in found:
        found.append(error)
        inner = getattr(error, "inner_exception", None)  # of BackendCompilerFailed
        error = inner or error.__cause__ or error.__context__
    return found


def is_out_of_memory(error):
    text = str(error)
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or any(
        words in text for words in ("can't allocate memory", "bad_alloc", "Cannot allocate memory",
                                    "CUDA out of memory", "failed to map segment")
    )


def sentence(error):
    """An exception as one line, never empty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class Subject:
    """A model, its arguments, and eager's answer."""

    def __init__(self, task):
        settings = task["settings"]
        with phase("fail_to_load"):
            make = models.open_source(task["model"], task["folder"])
            import torch

            backends.prepare(settings["backend"])
            torch.set_num_threads(settings["threads"])
            torch.manual_seed(SEED)
            torch.set_grad_enabled(False)
            self.target = settings["target"]
            if self.target == "cuda" and not torch.cuda.is_available():
                raise backends.Refused("target 'cuda' has no GPU here")
            self.before = measure.resident()
            made = make(settings["batch"])
            self.module, self.args, self.kwargs = models.place(
                made, settings["source"], settings["dtype"], self.target)
            del made
        self.torch = torch
        self.wait = torch.cuda.synchronize if self.target == "cuda" else lambda: None

    def call_of(self, function):
        """Calls a function with arguments of its own, which it may change."""
        args, kwargs = copy.deepcopy((self.args, self.kwargs))
        return lambda: function(*args, **kwargs)

    def answer(self, function):
        """(what it gives for the arguments as they were, milliseconds)."""
        call = self.call_of(function)
        start = time.perf_counter()
        result = call()
        self.wait()
        return result, (time.perf_counter() - start) * 1e3

    def exact(self):
        """Eager's answer in float64, or None when it cannot be had."""
        def double(leaf):
            is_real = isinstance(leaf, self.torch.Tensor) and leaf.is_floating_point()
            return leaf.double() if is_real else leaf

        try:
            module = copy.deepcopy(self.module).double()
            tree = self.torch.utils._pytree.tree_map(double, (self.args, self.kwargs))
            return module(*tree[0], **tree[1])
        except Exception:  # whatever a model raises that is not made for float64
            return None


def start(task):
    """(subject, eager's answer, its milliseconds, candidate, its answer, its milliseconds)."""
    backends.need(task["settings"]["backend"])
    subject = Subject(task)
    with phase("fail_to_run", "eager itself fails: "):
        eager, eager_ms = subject.answer(subject.module)
    memory = measure.peak_bytes(
        subject.call_of(subject.module), subject.before, subject.target, subject.wait)
    with phase("fail_to_run"):
        candidate = backends.build(
            task["settings"], subject.module, subject.args, subject.kwargs)
        answer, first_ms = subject.answer(candidate)
    if candidate is subject.module:
        first_ms = eager_ms
    return subject, eager, memory, candidate, answer, first_ms


def run_measure(task, deadline):
    settings = task["settings"]
    subject, eager, eager_bytes, candidate, answer, first_ms = start(task)
    from lathe.sweep import accuracy, inspection  # they import PyTorch

    found = {"status": "pass", "reason": None, "details": None,
             "first_call_ms": first_ms if task["is_alone"] else None}
    found |= inspection.tell(settings["backend"])
    tolerance = accuracy.tolerance_of(settings["source"], settings["dtype"])
    found["accuracy"], why = accuracy.compare(answer, eager, subject.exact, tolerance)
    del answer, eager
    if why:
        found |= {"status": "fail_accuracy", "reason": why}
    call = subject.call_of(candidate)
    with phase("fail_to_run", "at the second call: "):
        call()
        found["peak_memory_bytes"] = measure.peak_bytes(
            call, subject.before, subject.target, subject.wait)
    found["against_peak_memory_bytes"] = {"eager": eager_bytes}
    if task["measure"]["samples"] and not why:
        with phase("fail_to_run", "while it is timed: "):
            found["samples"], found["details"] = timed(task, subject, call, deadline)
    with phase("fail_to_run", "while its kernels are timed: "):
        found["kernels"] = inspection.kernels(settings["backend"], call)
    return found


def timed(task, subject, candidate, deadline):
    """(samples of the candidate and of all it is measured against, what is missing or None)."""
    calls, missing = {"candidate": candidate}, []
    for name in task["settings"]["against"]:
        backend, mode = backends.split(name)
        other = task["settings"] | {"backend": backend, "mode": mode, "options": {}}
        try:
            backends.prepare(backend)
            function = backends.build(other, subject.module, subject.args, subject.kwargs)
            calls[name] = subject.call_of(function)
            calls[name]()
        except Exception as error:  # the candidate's own figures stand without this one
            calls.pop(name, None)
            missing.append(f"against {name}: {sentence(error)}")
    wanted = task["measure"]
    found = measure.interleave(
        calls, wanted["samples"], wanted["warmup"], wanted["min_ms"],
        task["settings"]["threads"], subject.wait, deadline)
    return found, "\n".join(missing) or None


def run_warm(task, deadline):
    return {"warm_first_call_ms": start(task)[-1]}


PARTS = {"measure": run_measure, "warm": run_warm}


if __name__ == "__main__":
    main()
