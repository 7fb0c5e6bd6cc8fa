"""python -m lathe.sweep SWEEP.json: exit code 0 all passed, 1 a job failed, 2 wrong input."""

import argparse
import difflib
import fnmatch
import os
import signal
import sys

from lathe.sweep import driver, jobs, journal, product, spec
from lathe.sweep.backends import Refused
from lathe.sweep.local_engine import LocalEngine

FAILED = ("fail_accuracy", "fail_to_load", "fail_to_run", "timeout", "out_of_memory", "crashed")


def arguments(words):
    parser = argparse.ArgumentParser(
        prog="lathe sweep", allow_abbrev=False,
        description="Measures every combination of a sweep file, each in a process of its own, "
        "beside eager. A sweep that was stopped or killed goes on where it was: run it again.",
        epilog="Exit codes: 0 no job failed, 1 one did, 2 the input is wrong, 130 stopped. Sweep "
        "files follow experiments/schema/sweep.schema.json.",
    )
    parser.add_argument("sweep", metavar="SWEEP.json")
    parser.add_argument("--engine", choices=("local", "ray"), default="local",
                        help="where jobs run: here, or on the nodes of the running Ray cluster "
                        "(RAY_ADDRESS)")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N",
                        help="jobs side by side on a machine; only where nothing is timed "
                        '("samples": 0)')
    parser.add_argument("--only", metavar="GLOB",
                        help="jobs whose line in --list is like this, such as '*bert*inductor*'")
    parser.add_argument("--results", metavar="FILE",
                        help="results/NAME.sweep.jsonl unless given")
    parser.add_argument("--retry-failed", action="store_true",
                        help="run jobs again that did not pass")
    parser.add_argument("--list", action="store_true",
                        help="print the jobs and what is known of them; run nothing")
    return parser.parse_args(words)


def positive(word):
    if not word.isdecimal() or not 1 <= int(word) <= 1024:
        raise argparse.ArgumentTypeError(f"'{word}' is no number from 1 to 1024")
    return int(word)


def choose(every, glob):
    """The jobs that --only asks for, by name; a SpecError when there is none."""
    if glob is None:
        return {job["job"]: job for job in every}
    found = {j["job"]: j for j in every if fnmatch.fnmatchcase(product.title(j["settings"]), glob)}
    if not found:
        near = difflib.get_close_matches(glob, [product.title(j["settings"]) for j in every], 1, 0)
        raise spec.SpecError(f"--only: no job is like '{glob}'; the nearest is '{near[0]}'")
    return found


def show_list(every, wanted, results):
    rows = {r["job"]: r for r in journal.read(results)[0] if r.get("kind") == "row"}
    for job in every:
        if job["job"] in wanted:
            status = rows.get(job["job"], {}).get("status", "-")
            print(f"{status:14} {product.title(job['settings'])}")


def engine_of(options, is_timed):
    """A function that makes the engine for a spool folder."""
    slots = 1 if is_timed else options.jobs
    if options.engine == "local":
        return lambda spool: LocalEngine(spool, slots)
    from lathe.sweep.ray_engine import RayEngine

    return lambda spool: RayEngine(spool, slots)


class Stopped(Exception):
    """Somebody asked the sweep to stop."""


def stop_on_signals():
    def stop(number, _):
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)  # stopping is under way
        raise Stopped(signal.Signals(number).name)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)


def run(options):
    given, checked = spec.read(options.sweep)
    every = jobs.expand(checked)
    wanted = choose(every, options.only)
    results = options.results or driver.results_path(checked)
    if options.list:
        show_list(every, wanted, results)
        return 0
    is_timed = checked["measure"]["samples"] > 0
    if is_timed and options.jobs > 1:
        raise spec.SpecError("--jobs: these jobs are timed, and side by side they would disturb "
                             'each other; "measure": {"samples": 0} only compares answers')
    stop_on_signals()
    sweep = None
    try:
        sweep = driver.Sweep(given, checked, results, engine_of(options, is_timed), sys.stderr)
        rows = sweep.run(wanted, lambda row: options.retry_failed and row["status"] != "pass")
    except Stopped:
        print("stopped; everything measured is kept. Run the same command to go on.",
              file=sys.stderr)
        return 130
    finally:
        if sweep is not None:
            sweep.close()
    print(driver.summary(rows, results))
    return 1 if any(row["status"] in FAILED for row in rows) else 0


def main():
    try:
        code = run(arguments(sys.argv[1:]))
    except (spec.SpecError, journal.JournalError, Refused) as error:
        print(error, file=sys.stderr)
        code = 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 2
    except OSError as error:  # of the results file: a full disk
        print(f"error: {error}; everything measured is kept. Run the same command to go on.",
              file=sys.stderr)
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
