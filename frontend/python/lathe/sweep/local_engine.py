"""Jobs on this machine: one at a time, or side by side where nothing is timed."""

import time

from lathe.sweep import environment
from lathe.sweep.attempt import Attempt, Spool

POLL_SECONDS = 0.02


class LocalEngine:
    """Runs jobs in processes of this one, which alone looks after them."""

    def __init__(self, spool, slots, node="local"):
        self.spool, self.slots = spool, slots
        self.record = environment.describe(node)
        self.running = []

    def environments(self):
        """Of every machine that jobs may run on."""
        return [self.record]

    def accepts(self, job):
        return len(self.running) < self.slots

    def start(self, job):
        is_alone = self.slots == 1
        self.running.append(Attempt(job, self.spool, self.record["id"], is_alone))

    def jobs(self):
        """What runs, the oldest first."""
        return [attempt.job for attempt in self.running]

    def poll(self, seconds):
        """[(job, row or Lost)] of what has finished; waits so long, at most, for the first."""
        until = time.monotonic() + seconds
        while True:
            found = [(attempt, attempt.poll()) for attempt in self.running]
            done = [(attempt, result) for attempt, result in found if result is not None]
            for attempt, _ in done:
                self.running.remove(attempt)
            if done or time.monotonic() >= until:
                return [(attempt.job, result) for attempt, result in done]
            time.sleep(POLL_SECONDS)

    def forget(self, job):
        """Removes what lies in the spool of a job, whose row the journal has."""
        Spool(self.spool).forget(job)

    def stop(self):
        """Ends what runs; what its parts have left stays."""
        for attempt in self.running:
            attempt.kill()
        self.running = []
