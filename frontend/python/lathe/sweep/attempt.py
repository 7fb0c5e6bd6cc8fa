"""One job on this machine: its processes, their limits, and the row that comes of them.

The parts of a job leave their results in the spool, a folder beside the results file. What lies
there when an attempt begins is not measured again: so a sweep that was killed goes on.
"""

import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from lathe.sweep import backends, environment, journal

LOG_LINES = 30  # of what a process that crashed had printed
DONE_KEYS = {"job", "environment", "part", "seconds"}
# Of every row; null, or empty, is what was not measured.
UNMEASURED = {
    "status": "pass", "reason": None, "details": None, "accuracy": None, "samples": {},
    "first_call_ms": None, "warm_first_call_ms": None, "compile_ms": None,
    "peak_memory_bytes": None, "against_peak_memory_bytes": {}, "graphs": None,
    "graph_breaks": None, "fallbacks": [], "kernels": [],
}


class Attempt:
    """A job that runs. Ask `poll` for its row; `kill` ends what runs, at once."""

    def __init__(self, job, spool, environment, is_alone):
        """environment: the id of this machine's. is_alone: whether times are not disturbed."""
        self.job, self.environment, self.is_alone = job, environment, is_alone
        self.spool = Spool(spool)
        self.work = self.spool.work_folder(job["job"])
        self.started = time.time()
        self.deadline = time.monotonic() + job["limits"]["seconds"]
        self.parts, self.process = {}, None

    def poll(self):
        """The finished row; None while it runs; Lost when somebody killed a process of it."""
        if self.process is not None:
            code = self.process.poll()
            if code is None:
                why = self.exceeds()
                if why is None:
                    return None
                self.kill()
                found = self.spool.take(self.job["job"], self.part, self.environment)
                self.parts[self.part] = found or why  # it may have ended meanwhile
            else:
                self.end_group()
                found = self.spool.take(self.job["job"], self.part, self.environment)
                if found is None and code == -signal.SIGKILL:
                    return Lost(f"killed by {signal.Signals(-code).name}")
                self.parts[self.part] = found or self.crash(code)
            self.process = None
        part = self.next_part()
        if part is None:
            return self.row()
        self.part = part
        found = self.spool.take(self.job["job"], part, self.environment)
        if found is None and part == "warm" and not self.caches().is_dir():
            found = {"reason": "the caches of the first start are gone"}
        if found is not None:
            self.parts[part] = found
            return self.poll()
        self.launch()
        return None

    def caches(self):
        return self.work / "caches"

    def next_part(self):
        if "measure" not in self.parts:
            return "measure"
        kind = backends.BACKENDS[self.job["settings"]["backend"]].kind
        wants_warm = self.job["measure"]["warm"] and self.job["measure"]["samples"]
        if "warm" in self.parts or kind != "dynamo" or not wants_warm:
            return None
        return "warm" if self.parts["measure"]["status"] == "pass" else None

    def launch(self):
        if self.part == "measure":
            shutil.rmtree(self.work, ignore_errors=True)  # cold caches
        self.caches().mkdir(parents=True, exist_ok=True)
        task = self.job | {
            "part": self.part, "environment": self.environment, "is_alone": self.is_alone,
            "parent": os.getpid(), "result": str(self.spool.file(self.job["job"], self.part)),
        }
        (self.work / "task.json").write_text(json.dumps(task))
        with open(self.log(), "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lathe.sweep.worker", str(self.work / "task.json")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env=os.environ | surroundings(self.job["settings"], self.caches()),
            )
        self.began = time.monotonic()

    def log(self):
        return self.work / f"{self.part}.log"

    def exceeds(self):
        """The record of a job that is past a limit, or None."""
        if time.monotonic() > self.deadline:
            limit = self.job["limits"]["seconds"]
            return self.ended("timeout", f"not done after {limit:g} s (limits.seconds)")
        # Addresses are what is limited on the CPU; a GPU's driver takes too many of them.
        limit = self.job["limits"]["memory_gib"]
        if self.job["settings"]["target"] != "cpu" and self.resident_bytes() > limit * 2**30:
            return self.ended("out_of_memory", f"more than {limit:g} GiB (limits.memory_gib)")
        return None

    def ended(self, status, reason):
        """The record of a process that left none, with what it had printed."""
        return {"status": status, "reason": reason, "details": self.log_tail(),
                "seconds": time.monotonic() - self.began}

    def resident_bytes(self):
        try:
            text = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text()
        except OSError:
            return 0
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def crash(self, code):
        if code < 0:
            return self.ended("crashed", f"the process was killed by {signal.Signals(-code).name}")
        return self.ended("crashed", f"the process ended with code {code} and left no result")

    def log_tail(self):
        try:
            lines = self.log().read_text(errors="replace").splitlines()
        except OSError:
            return None
        return "\n".join(lines[-LOG_LINES:]) or None

    def end_group(self):
        """Ends what the process started and left."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill(self):
        if self.process is not None:
            self.end_group()
            self.process.wait()

    def row(self):
        """The row of the finished job, but for `attempts`, which who asks counts."""
        measured = {k: v for k, v in self.parts["measure"].items() if k not in DONE_KEYS}
        row = UNMEASURED | measured
        warm = self.parts.get("warm", {})
        row["warm_first_call_ms"] = warm.get("warm_first_call_ms")
        if warm.get("reason"):
            row["details"] = f"{row['details'] or ''}\nwarm start: {warm['reason']}".strip()
        seconds = sum(part.get("seconds", 0) for part in self.parts.values())
        return make_row(self.job, self.environment, row, self.started, seconds)


def make_row(job, environment, found, started, seconds):
    """A row of the results file. started: of time.time()."""
    began = datetime.datetime.fromtimestamp(started, datetime.timezone.utc)
    return {
        "kind": "row", "job": job["job"], "environment": environment,
        "settings": job["settings"], **UNMEASURED, **found,
        "started": began.isoformat(timespec="milliseconds"), "seconds": round(seconds, 3),
    }


class Lost:
    """A job without a result through no fault of its own that is known: it may begin again."""

    def __init__(self, why):
        self.why = why


def surroundings(settings, caches):
    """Variables of a worker: its threads, and caches that no other job has written."""
    threads = str(settings["threads"])
    return {
        "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads,
        "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor", "TRITON_CACHE_DIR": f"{caches}/triton",
        "XDG_CACHE_HOME": str(caches), "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": environment.python_path(),
    }


class Spool:
    """The folder of results that the journal does not have yet."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)

    def file(self, job, part):
        return self.folder / f"{job}.{part}"

    def work_folder(self, job):
        return self.folder / f"{job}.work"

    def take(self, job, part, environment):
        """What a part left, when it was whole and measured in this environment; else None."""
        try:
            found = journal.decode(self.file(job, part).read_bytes().rstrip(b"\n"))
        except OSError:
            return None
        if found is None or found.get("environment") != environment:
            return None
        return found if found.get("job") == job and found.get("part") == part else None

    def jobs(self):
        """Names of jobs that something is there of."""
        return sorted({path.name.lstrip(".").partition(".")[0] for path in self.folder.iterdir()})

    def forget(self, job):
        """Removes all of a job."""
        for path in [*self.folder.glob(f"{job}.*"), *self.folder.glob(f".{job}.*")]:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def close(self):
        """Removes the folder when it is empty."""
        try:
            self.folder.rmdir()
        except OSError:
            pass
