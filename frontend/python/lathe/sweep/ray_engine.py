"""Jobs on the nodes of a running Ray cluster: an actor for each node, which holds all of its CPUs.

An actor runs jobs as this machine would (LocalEngine): processes of its own with their limits, a
spool on its node. Ray repeats nothing: the driver gives what a dead node had to another one. Nodes
may come while the sweep runs. Every node needs Lathe's tree, the models and the Python packages at
the same places as here, as a shared file system or an image gives them.
"""

import pathlib
import time

from lathe.sweep import environment
from lathe.sweep.attempt import Lost, Spool
from lathe.sweep.backends import Refused
from lathe.sweep.local_engine import LocalEngine

LOOK_SECONDS = 5  # between looks for nodes that have come
START_SECONDS = 120  # in which the nodes of the beginning say what they are
ABSENT_SECONDS = 60  # without any node, after which a sweep gives up


class Node:
    """What an actor does; one call at a time."""

    def __init__(self, spool, slots, name):
        self.engine = LocalEngine(spool, slots, name)

    def describe(self):
        """(environment record, jobs that the spool of this node has something of)."""
        return self.engine.record, Spool(self.engine.spool).jobs()

    def run(self, job):
        """(row, or why there is none) of a job."""
        self.engine.start(job)
        while True:
            for _, result in self.engine.poll(1):
                return (None, result.why) if isinstance(result, Lost) else (result, None)

    def forget(self, job):
        self.engine.forget(job)


class RayEngine:
    """Runs jobs on every node, one at a time on each."""

    def __init__(self, spool, slots, look_seconds=LOOK_SECONDS):
        """Joins the cluster of RAY_ADDRESS, or the one of this machine; Refused without one."""
        try:
            import ray
        except ImportError:
            raise Refused("--engine ray: ray is not installed: pip install ray") from None
        self.ray, self.spool, self.slots = ray, pathlib.Path(spool).absolute(), slots
        self.look_seconds = look_seconds
        self.is_ours = not ray.is_initialized()
        if self.is_ours:
            try:
                ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
            except ConnectionError:
                raise Refused("--engine ray: no cluster was found; `ray start --head` begins one, "
                              "RAY_ADDRESS names another") from None
        self.nodes = {}  # by node id: actor, environment record, jobs of its spool
        self.running = {}  # by the reference of its result: job, node id
        self.looked = -float("inf")
        self.coming = {}  # by the reference of its description: node id, actor
        self.had_node = time.monotonic()
        self.look(START_SECONDS)

    def look(self, wait_seconds=0):
        """Starts actors on nodes that have come, and lets go of those that have gone.

        An actor takes part once it has said what its node is; that is waited for only so long.
        """
        if time.monotonic() > self.looked + self.look_seconds:
            self.looked = time.monotonic()
            alive = {n["NodeID"]: n for n in self.ray.nodes() if n["Alive"]}
            busy = {node for _, node in self.running.values()}
            for name in set(self.nodes) - set(alive) - busy:
                del self.nodes[name]
            known = set(self.nodes) | {name for name, _ in self.coming.values()}
            for name in set(alive) - known:
                actor = self.actor(alive[name])
                self.coming[actor.describe.remote()] = (name, actor)
        if self.coming:
            all_of_them = list(self.coming)
            ready, _ = self.ray.wait(all_of_them, num_returns=len(all_of_them),
                                     timeout=wait_seconds)
            for reference in ready:
                self.meet(reference)
        if self.nodes:
            self.had_node = time.monotonic()

    def meet(self, reference):
        """A node has told what it is, or cannot: then it is asked again at the next look."""
        name, actor = self.coming.pop(reference)
        try:
            record, spooled = self.ray.get(reference)
        except self.ray.exceptions.RayError:
            self.ray.kill(actor)
            return
        self.nodes[name] = (actor, record, set(spooled))

    def actor(self, node):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return self.ray.remote(Node).options(
            num_cpus=node["Resources"].get("CPU", 0), max_restarts=0, max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            runtime_env={"env_vars": {"PYTHONPATH": environment.python_path()}},
        ).remote(str(self.spool), self.slots, node.get("NodeName") or node["NodeID"])

    def environments(self):
        """Of every node; those that have gone count as long as a job of theirs is not kept."""
        return [record for _, record, _ in self.nodes.values()]

    def idle(self):
        busy = {node for _, node in self.running.values()}
        return [name for name in self.nodes if name not in busy]

    def accepts(self, job):
        self.look()
        return bool(self.idle())

    def start(self, job):
        """Prefers the node whose spool has something of the job."""
        idle = self.idle()
        name = next((n for n in idle if job["job"] in self.nodes[n][2]), idle[0])
        self.running[self.nodes[name][0].run.remote(job)] = (job, name)

    def jobs(self):
        return [job for job, _ in self.running.values()]

    def poll(self, seconds):
        """[(job, row or Lost)]; a Refused when there was no node for long."""
        if not self.running:
            if not self.nodes and time.monotonic() > self.had_node + ABSENT_SECONDS:
                raise Refused("--engine ray: no node is left; everything measured is kept")
            time.sleep(seconds)
            return []
        ready, _ = self.ray.wait(list(self.running), num_returns=1, timeout=seconds)
        found = []
        for reference in ready:
            job, name = self.running.pop(reference)
            try:
                row, why = self.ray.get(reference)
                found.append((job, Lost(why) if row is None else row))
            except self.ray.exceptions.RayActorError:
                del self.nodes[name]
                self.looked = -float("inf")
                found.append((job, Lost("its node died")))
            except self.ray.exceptions.RayTaskError as error:
                raise Refused(f"--engine ray: node {name} cannot run jobs: {error}") from None
        return found

    def forget(self, job):
        for actor, _, spooled in self.nodes.values():
            spooled.discard(job)
            actor.forget.remote(job)

    def stop(self):
        """Ends the actors, and with them what they run."""
        actors = [actor for actor, _, _ in self.nodes.values()]
        for actor in actors + [actor for _, actor in self.coming.values()]:
            self.ray.kill(actor)
        self.nodes, self.running, self.coming = {}, {}, {}
        if self.is_ours:
            self.ray.shutdown()

