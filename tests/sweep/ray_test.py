"""A sweep on a local Ray of several processes, one of whose nodes is killed in the middle."""

import os
import time
import unittest

import sweeps
from lathe.sweep import driver, spec

import ray
from ray import cluster_utils

from lathe.sweep import ray_engine

JOBS = 18
SLOW = "import time; time.sleep(0.3); raise ValueError('slow')\n\ndef model():\n    pass\n"


class RayTest(unittest.TestCase):
    def setUp(self):
        self.cluster = cluster_utils.Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "node_name": "first"})
        self.addCleanup(self.cluster.shutdown)
        self.second = self.cluster.add_node(num_cpus=1, node_name="second")
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level="ERROR")
        self.addCleanup(ray.shutdown)
        self.cluster.wait_for_nodes()
        self.stream = open(os.devnull, "w")
        self.addCleanup(self.stream.close)

    def sweep(self, folder):
        given, checked = spec.read(folder.path)
        sweep = driver.Sweep(given, checked, folder.results,
                             lambda spool: ray_engine.RayEngine(spool, 1, 0.5), self.stream)
        self.addCleanup(sweep.close)
        return sweep

    def test_a_node_killed_in_the_middle_loses_no_job_and_runs_none_twice(self):
        folder = sweeps.SweepFolder(self, ["raises"], batch=list(range(1, JOBS + 1)))
        (folder.folder / "raises.py").write_text(SLOW)
        sweep = self.sweep(folder)
        self.assertEqual({e["node"] for e in sweep.engine.environments()}, {"first", "second"})
        keep = sweep.keep

        def keep_and_kill(job, row):
            keep(job, row)
            if folder.count() == JOBS // 3:
                self.cluster.remove_node(self.second, allow_graceful=False)

        sweep.keep = keep_and_kill
        rows = sweep.run({job["job"]: job for job in sweep.jobs}, lambda row: False)
        self.assertEqual(len(rows), JOBS)
        self.assertEqual({row["status"] for row in rows}, {"fail_to_load"})
        self.assertEqual(len(folder.rows()), JOBS)
        nodes = {e["id"]: e["node"] for e in sweep.journal.environments().values()}
        self.assertEqual({nodes[row["environment"]] for row in rows}, {"first", "second"})
        print(f"{sum(row['attempts'] > 1 for row in rows)} jobs began again on another node")

    def test_a_node_that_comes_later_takes_part(self):
        folder = sweeps.SweepFolder(self, ["raises"], batch=list(range(1, JOBS + 1)))
        (folder.folder / "raises.py").write_text(SLOW)
        sweep = self.sweep(folder)
        keep = sweep.keep

        def keep_and_add(job, row):
            keep(job, row)
            if folder.count() == 1:
                self.cluster.add_node(num_cpus=1, node_name="third")
                until = time.monotonic() + 100
                while len(sweep.engine.environments()) < 3 and time.monotonic() < until:
                    sweep.engine.look(1)

        sweep.keep = keep_and_add
        sweep.run({job["job"]: job for job in sweep.jobs}, lambda row: False)
        self.assertIn("third", {e["node"] for e in sweep.journal.environments().values()})


if __name__ == "__main__":
    unittest.main()
