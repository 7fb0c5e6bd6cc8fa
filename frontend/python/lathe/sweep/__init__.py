"""Sweeps: many models under many settings, measured beside eager, one process for each job.

    python -m lathe.sweep SWEEP.json

`spec` reads and checks the file, `product` and `jobs` make jobs of it, `driver` lets an engine run
them (`local_engine`, `ray_engine`) and keeps their rows in a `journal`. An `attempt` is a job on a
machine: it starts a `worker`, which asks `models`, `backends`, `accuracy`, `measure`, `inspection`.
"""
