"""Runs entries in worker processes and keeps what each case gave."""

import collections
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time

from lathe.sweep import environment

STARTING_SECONDS = 120  # of a worker: it imports PyTorch
CASES_BEFORE_RESTART = 3000  # caches of compiled code grow


class Worker:
    """One process; a new one follows when it ends or is killed."""

    def __init__(self, settings):
        self.settings, self.process, self.buffer = settings, None, b""

    def start(self):
        if self.process is not None and self.process.poll() is None:
            return
        self.buffer, self.count = b"", 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lathe.conformance.worker", json.dumps(self.settings)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": environment.python_path(), "HF_HUB_OFFLINE": "1"},
        )
        if self.line(STARTING_SECONDS) is None:
            self.stop()
            raise RuntimeError("a worker does not start: try python -m lathe.conformance.worker")

    def line(self, seconds):
        """The next record; None when the process ended or nothing came in time."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def stop(self):
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.process = None

    def run(self, entry, done, keep):
        """All cases of an entry that are not in `done`: keep(number, verdict, words, given,
        measured) with what the worker measured, or None.
        """
        done = set(done)
        while True:
            self.start()
            try:
                self.process.stdin.write(
                    json.dumps({"entry": entry, "done": sorted(done)}).encode() + b"\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                self.stop()
                continue
            begun = self.follow(entry, done, keep)
            if begun is None:
                if self.count > CASES_BEFORE_RESTART:
                    self.stop()
                return
            done.add(begun)

    def follow(self, entry, done, keep):
        """None at the end of an entry; the number of the case that the process did not survive."""
        number, given = -1, ""
        while True:
            record = self.line(self.settings["seconds"])
            if record is None:
                verdict, words = self.end()
                keep(number, verdict, words, given, None)
                return number if number >= 0 else None
            if "begin" in record:
                number, given = record["begin"], record["given"]
            elif "case" in record:
                self.count += 1
                done.add(number)
                keep(number, record["verdict"], record["words"], given, record.get("measured"))
            elif "broken" in record:
                keep(-1, "untraced", record["broken"], "", None)
            else:
                return None

    def end(self):
        """Why no line came: (verdict, words)."""
        code = self.process.poll()
        if code is None:
            try:
                code = self.process.wait(1)
            except subprocess.TimeoutExpired:
                self.stop()
                return "timeout", f"not done after {self.settings['seconds']:g} s"
        self.stop()
        return "crashed", (signal.Signals(-code).name if code < 0 else f"ended with code {code}")


def run(entries, settings, results, jobs, progress):
    """Runs what `results` does not have yet."""
    todo = queue.SimpleQueue()
    for entry in entries:
        todo.put(entry)
    lock, errors = threading.Lock(), []

    def work():
        worker = Worker(settings)
        try:
            while not errors:
                try:
                    entry = todo.get_nowait()
                except queue.Empty:
                    return
                if results.is_done(entry):
                    progress(entry)
                    continue

                def keep(*found):
                    with lock:
                        results.add(entry, *found)

                worker.run(entry, results.numbers(entry), keep)
                with lock:
                    results.finish(entry)
                    progress(entry)
        except Exception as error:  # the journal cannot be written, a worker does not start
            errors.append(error)
        finally:
            worker.stop()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)  # so that an interrupt is heard
    if errors:
        raise errors[0]


class Results:
    """The journal of a run: a record for each case, and one for each entry that is done."""

    def __init__(self, journal, settings):
        self.journal = journal
        self.cases = collections.defaultdict(dict)
        self.done = set()
        for record in journal.records:
            if record.get("kind") == "case":
                self.cases[key(record)][record["case"]] = record
            elif record.get("kind") == "entry":
                self.done.add(key(record))
        if not journal.records:
            journal.append({"kind": "conformance", **settings})

    def describe(self, *records):
        """Adds those that the journal does not have: of the machine, and of what was asked for."""
        for record in records:
            if record not in self.journal.records:
                self.journal.append(record)

    def is_done(self, entry):
        return key(entry) in self.done

    def numbers(self, entry):
        return [n for n in self.cases[key(entry)] if n >= 0]

    def add(self, entry, number, verdict, words, given, measured):
        record = {"kind": "case", **identity(entry), "case": number, "verdict": verdict,
                  "words": words, "given": given}
        if measured is not None:
            record["measured"] = measured
        self.cases[key(entry)][number] = record
        self.journal.append(record)

    def finish(self, entry):
        self.done.add(key(entry))
        self.journal.append({"kind": "entry", **identity(entry)})


def identity(entry):
    return {name: entry[name] for name in ("suite", "name", "dtype")}


def key(entry):
    return entry["suite"], entry["name"], entry["dtype"]
