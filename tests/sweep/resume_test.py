"""Sweeps that are killed, stopped and begun again: nothing measured is lost, nothing done twice."""

import os
import random
import shutil
import signal
import time
import unittest
from unittest import mock

import sweeps
from lathe.sweep import attempt, driver, jobs, journal, local_engine, spec

KINDS = ("raises", "leaves", "breaks", "grows", "exits")
DRIVER_KILLS = 15
SEED = 0


class Kill(BaseException):
    """Stands for the end of this process."""


class ResumeTest(unittest.TestCase):
    def test_200_jobs_killed_at_random_moments_end_with_the_table_of_an_undisturbed_sweep(self):
        product = {"batch": list(range(1, 11)), "threads": [1, 2, 3, 4], "limits": {"attempts": 99}}
        calm = sweeps.SweepFolder(self, KINDS, **product)
        code, out, errors = calm.run("--jobs", "4")
        self.assertEqual(code, 1, errors)
        self.assertEqual(len(calm.table()), 200)
        self.assertEqual({status for _, status, _ in calm.table()},
                         {"fail_to_load", "crashed", "out_of_memory"})
        stormy = sweeps.SweepFolder(self, KINDS, **product)
        choose = random.Random(SEED)
        driver_kills = worker_kills = 0
        while driver_kills < DRIVER_KILLS:
            process = stormy.start("--jobs", "4")
            wanted = stormy.count() + choose.randrange(10)
            while stormy.count() < wanted and process.poll() is None:
                workers = sweeps.children(process.pid)
                if workers and choose.random() < 0.05:
                    worker_kills += self.kill(choose.choice(workers))
                time.sleep(choose.uniform(0, 0.05))
            time.sleep(choose.uniform(0, 0.1))
            self.kill(process.pid)
            process.communicate()
            driver_kills += 1
        killed_at = len(stormy.rows())
        code, out, errors = stormy.run("--jobs", "4")
        print(f"{driver_kills} drivers and {worker_kills} workers were killed, the last driver "
              f"after {killed_at} rows")
        self.assertEqual(code, 1, errors)
        self.assertIn("(resumed)", errors)
        self.assertEqual(stormy.leftovers(), [])
        # Not one job twice; the folder is another, so the names of jobs are compared alone.
        self.assertEqual(stormy.table(), calm.table())

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return 0
        return 1

    def test_a_driver_killed_at_any_byte_of_a_row_measures_it_no_second_time(self):
        folder = sweeps.SweepFolder(self, ["raises"])
        stream = open(os.devnull, "w")
        self.addCleanup(stream.close)
        kept = folder.folder / "kept"
        given, checked = spec.read(folder.path)
        (job,) = jobs.expand(checked)
        engine = local_engine.LocalEngine(kept, 1)
        engine.start(job)
        ((_, row),) = engine.poll(60)
        engine.spool = driver.spool_path(folder.results)

        def sweep():
            return driver.Sweep(given, checked, folder.results, lambda spool: engine, stream)

        length = len(journal.encode(row | {"attempts": 1}))
        self.assertGreater(length, 500)
        write = os.write
        for end in range(length + 1):
            shutil.rmtree(folder.results.parent, ignore_errors=True)
            shutil.copytree(kept, engine.spool)

            def torn(file, data):
                if b'"kind":"row"' not in data:
                    return write(file, data)
                write(file, data[:end])
                raise Kill

            with mock.patch.object(attempt.Attempt, "launch", side_effect=AssertionError):
                killed = sweep()
                with mock.patch("os.write", torn), self.assertRaises(Kill):
                    killed.run({job["job"]}, lambda row: False)
                os.close(killed.journal.file)
                resumed = sweep()
                resumed.run({job["job"]}, lambda row: False)
                resumed.close()
            self.assertEqual(len(folder.rows()), 1, end)
            self.assertEqual(folder.leftovers(), [], end)

    def test_a_spool_file_cut_at_any_byte_is_measured_again(self):
        folder = sweeps.SweepFolder(self, ["raises"])
        _, checked = spec.read(folder.path)
        (job,) = jobs.expand(checked)
        engine = local_engine.LocalEngine(folder.folder / "spool", 1)
        engine.start(job)
        engine.poll(60)
        spool = attempt.Spool(folder.folder / "spool")
        path, name = spool.file(job["job"], "measure"), engine.record["id"]
        whole = path.read_bytes()
        self.assertIsNotNone(spool.take(job["job"], "measure", name))
        self.assertIsNone(spool.take(job["job"], "measure", "another"))
        for end in range(len(whole) - 1):
            path.write_bytes(whole[:end])
            self.assertIsNone(spool.take(job["job"], "measure", name), end)

    def test_an_interrupt_stops_cleanly_and_says_so(self):
        folder = sweeps.SweepFolder(self, ["raises", "hangs"])
        process = folder.start()
        while not folder.results.exists() or not folder.rows():
            time.sleep(0.05)
        time.sleep(0.3)
        workers = sweeps.children(process.pid)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("stopped; everything measured is kept", errors)
        self.assertNotIn("Traceback", errors)
        self.assertFalse([pid for pid in workers if sweeps.is_running(pid)])
        self.assertEqual([r["settings"]["model"] for r in folder.rows()], ["file:raises.py:model"])

    def test_a_driver_that_is_killed_takes_its_workers_along(self):
        folder = sweeps.SweepFolder(self, ["hangs"])
        process = folder.start()
        while not (workers := sweeps.children(process.pid)):
            time.sleep(0.05)
        time.sleep(0.5)
        process.kill()
        process.communicate()
        until = time.monotonic() + 10
        while any(map(sweeps.is_running, workers)) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertFalse([pid for pid in workers if sweeps.is_running(pid)])
        for pid in workers:
            os.killpg(pid, signal.SIGKILL)  # what the worker itself had started

    def test_a_second_driver_is_refused(self):
        folder = sweeps.SweepFolder(self, ["hangs"])
        process = folder.start()
        self.addCleanup(process.communicate)
        self.addCleanup(process.send_signal, signal.SIGINT)
        while not sweeps.children(process.pid):
            time.sleep(0.05)
        code, out, errors = folder.run()
        self.assertEqual((code, out), (2, ""))
        self.assertIn("is being written by another sweep", errors)

    def test_failed_jobs_are_run_again_only_when_asked(self):
        folder = sweeps.SweepFolder(self, ["raises"])
        folder.run()
        _, _, errors = folder.run()
        self.assertIn("1 jobs, 1 done before (resumed)", errors)
        self.assertEqual(len(folder.rows()), 1)
        folder.run("--retry-failed")
        self.assertEqual(len(folder.rows()), 2)

    def test_a_changed_model_is_measured_anew(self):
        folder = sweeps.SweepFolder(self, ["raises"])
        folder.run()
        with open(folder.folder / "raises.py", "a") as file:
            file.write("# changed\n")
        folder.run()
        self.assertEqual(len({row["job"] for row in folder.rows()}), 2)

    def test_what_was_measured_elsewhere_is_measured_here_too(self):
        folder = sweeps.SweepFolder(self, ["raises"])
        folder.run()
        records, _ = journal.read(folder.results)
        elsewhere = [r | {"cpu": "another"} if r["kind"] == "environment" else r for r in records]
        folder.results.write_bytes(b"".join(map(journal.encode, elsewhere)))
        folder.run()
        self.assertEqual(len(folder.rows()), 2)


if __name__ == "__main__":
    unittest.main()
