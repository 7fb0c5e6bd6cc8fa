"""A sweep from beginning to end: what is left to do, who does it, what is kept."""

import collections
import datetime
import pathlib
import time

from lathe.sweep import environment, jobs, journal, product, progress
from lathe.sweep.attempt import Lost, Spool, make_row

POLL_SECONDS = 0.5
FAILURES_SHOWN = 10


def results_path(spec):
    return pathlib.Path("results", f"{spec['name']}.sweep.jsonl")


def spool_path(results):
    return pathlib.Path(results).with_suffix("").with_suffix(".sweep.spool")


class Sweep:
    """A sweep whose results file is open: this process alone writes it."""

    def __init__(self, given, spec, results, make_engine, stream):
        """make_engine(spool folder) gives what runs jobs; stream: where progress is told.

        A JournalError when the results file cannot be used.
        """
        self.given, self.spec, self.stream = given, spec, stream
        self.jobs = jobs.expand(spec)
        self.journal = journal.Journal(results)
        self.engine = None
        try:
            self.spool = spool_path(results)
            self.engine = make_engine(self.spool)
        except BaseException:
            self.close()
            raise
        self.attempts = collections.Counter()

    def close(self):
        if self.engine is not None:
            self.engine.stop()
            Spool(self.spool).close()
        self.journal.close()

    def begin(self):
        """Writes what the sweep is, unless it stands there, and clears what a kill left over."""
        header = {"kind": "sweep", "version": journal.VERSION, "name": self.spec["name"],
                  "title": self.spec["title"], "about": self.spec["about"], "spec": self.given,
                  "jobs": len(self.jobs)}
        before = [r for r in self.journal.records if r.get("kind") == "sweep"]
        if not before or {k: v for k, v in before[-1].items() if k != "started"} != header:
            now = datetime.datetime.now(datetime.timezone.utc)
            self.journal.append(header | {"started": now.isoformat(timespec="seconds")})

    def done(self):
        """Rows that stand: of this sweep's jobs, taken where they could be taken again."""
        rows, known = self.journal.rows(), self.journal.environments()
        here = self.engine.environments()
        return {
            job["job"]: rows[job["job"]]
            for job in self.jobs
            if job["job"] in rows
            and any(environment.is_same(known.get(rows[job["job"]]["environment"]), now,
                                        job["packages"]) for now in here)
        }

    def run(self, wanted, is_retried):
        """Runs what is wanted (by job) and not done; is_retried(row): done, but to be done again.

        Returns the rows of what is wanted.
        """
        self.begin()
        done = self.done()
        again = {name for name, row in done.items() if name in wanted and is_retried(row)}
        for name in set(done) | again:
            self.engine.forget(name)
        todo = collections.deque(
            job for job in self.jobs
            if job["job"] in wanted and (job["job"] not in done or job["job"] in again)
        )
        self.tell_beginning(len(wanted), len(wanted) - len(todo))
        self.bar = progress.on(self.stream, len(wanted), len(wanted) - len(todo))
        try:
            while todo or self.engine.jobs():
                while todo and self.engine.accepts(todo[0]):
                    self.engine.start(todo.popleft())
                self.bar.show(", ".join(product.title(j["settings"]) for j in self.engine.jobs()))
                for job, result in self.engine.poll(POLL_SECONDS):
                    self.attempts[job["job"]] += 1
                    if isinstance(result, Lost) and self.may_begin_again(job, result):
                        todo.appendleft(job)
                        continue
                    self.keep(job, result)
        finally:
            self.bar.close()
        rows = self.journal.rows()
        return [rows[job["job"]] for job in self.jobs if job["job"] in wanted]

    def may_begin_again(self, job, lost):
        return self.attempts[job["job"]] < job["limits"]["attempts"]

    def keep(self, job, row):
        """Appends a row, and after that lets go of what the spool has of it."""
        count = self.attempts[job["job"]]
        if isinstance(row, Lost):
            row = self.lost_row(job, row.why, count)
        row["attempts"] = count
        known = self.journal.environments()
        for record in self.engine.environments():
            if record["id"] == row["environment"] and record["id"] not in known:
                self.journal.append(record)
        self.journal.append(row)
        self.engine.forget(job["job"])
        text = f"{product.title(job['settings'])}: {progress.outcome(row)}"
        self.bar.advance(text)
        if row["status"] != "pass" and isinstance(self.bar, progress.Bar):
            self.bar.say(text)

    def lost_row(self, job, why, count):
        """The row of a job that was killed as often as it may begin."""
        reason = f"{why}, {count} times; so ends what takes all memory of a machine"
        found = {"status": "crashed", "reason": reason}
        records = [*self.engine.environments(), *self.journal.environments().values()]
        return make_row(job, records[0]["id"], found, time.time(), 0)

    def tell_beginning(self, total, before):
        text = f"{self.spec['name']}: {total} jobs"
        if before:
            text += f", {before} done before (resumed)"
        if self.journal.bad_lines:
            bad = self.journal.bad_lines
            text += f"; {bad} torn line{'s' * (bad > 1)} of {self.journal.path} left out"
        print(text, file=self.stream, flush=True)


def summary(rows, results):
    """What came out, as lines: counts, what failed and why, what to do next."""
    counts = collections.Counter(row["status"] for row in rows)
    told = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.most_common())
    lines = [f"{len(rows)} jobs: {told}"]
    bad = [row for row in rows if row["status"] != "pass"]
    for row in bad[:FAILURES_SHOWN]:
        lines.append(f"  {product.title(row['settings'])}: {progress.outcome(row)}")
    if len(bad) > FAILURES_SHOWN:
        lines.append(f"  and {len(bad) - FAILURES_SHOWN} more")
    lines.append(f"Next: ./lathe report {results} -o report.html")
    return "\n".join(lines)
