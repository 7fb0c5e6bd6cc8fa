"""python -m lathe.conformance: what a backend of torch.compile gets right."""

import argparse
import collections
import json
import os
import sys

from lathe.sweep import environment, journal
from lathe.conformance import driver, table
from lathe.conformance.opinfo import DTYPES
from lathe.conformance.suites import ASKED_FOR, SUITES, Choice


def parser():
    p = argparse.ArgumentParser(
        prog="python -m lathe.conformance", description=__doc__.split(": ", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="suites:\n" + "\n".join(f"  {n:10} {s.summary}" for n, s in SUITES.items()))
    p.add_argument("--backend", required=True,
                   help="of torch.compile, by name; or 'export': Lathe on .pt2 archives")
    p.add_argument("--import", dest="modules", action="append", default=[], metavar="MODULE",
                   help="that registers the backend when it is imported")
    p.add_argument("--option", action="append", default=[], metavar="NAME=JSON",
                   help="of the backend, such as fail_on_fallback=true")
    p.add_argument("--suite", action="append", choices=list(SUITES),
                   help=f"all but {' and '.join(ASKED_FOR)} unless given")
    p.add_argument("--dtypes", default="f32", help=f"of {', '.join(DTYPES)}; comma-separated")
    p.add_argument("--only", default="", metavar="REGEX", help="entries whose name has it")
    p.add_argument("--share", type=float, default=1.0, help="of the cases, drawn by --seed")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--graphs", type=int, default=300,
                   help="of the suite graphs, from the seed --seed on")
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="worker processes")
    p.add_argument("--seconds", type=float, default=120, help="that a case may take")
    p.add_argument("--results", help="results/conformance-BACKEND.jsonl unless given")
    p.add_argument("--against", action="append", default=[], metavar="RESULTS",
                   help="results of another backend, beside these in the table")
    p.add_argument("--reasons", type=int, default=20, help="lines for what does not agree")
    return p


def options_of(texts):
    found = {}
    for text in texts:
        name, is_given, value = text.partition("=")
        try:
            found[name] = json.loads(value) if is_given else True
        except ValueError:
            found[name] = value
    return found


def asked_for(entries):
    """A record for each suite and dtype: how many entries a run has, so that a report can say what
    is still missing."""
    counts = collections.Counter((e["suite"], e["dtype"]) for e in entries)
    return [{"kind": "asked", "suite": suite, "dtype": dtype, "entries": n,
             "about": SUITES[suite].summary} for (suite, dtype), n in counts.items()]


def main(words=None):
    p = parser()
    asked = p.parse_args(words)
    dtypes = tuple(asked.dtypes.split(","))
    if set(dtypes) - set(DTYPES):
        unknown = sorted(set(dtypes) - set(DTYPES))[0]
        p.error(f"no dtype '{unknown}'; there are {', '.join(DTYPES)}")
    choice = Choice(dtypes, asked.only, asked.device, asked.seed, asked.graphs)
    settings = {"backend": asked.backend, "options": options_of(asked.option),
                "modules": asked.modules, "device": asked.device, "threads": 1,
                "share": asked.share, "seed": asked.seed, "seconds": asked.seconds}
    path = asked.results or f"results/conformance-{asked.backend}.jsonl"
    suites = asked.suite or [name for name in SUITES if name not in ASKED_FOR]
    try:
        entries = [e for name in suites for e in SUITES[name].entries(choice)]
        if not entries:
            p.error("no entry has this name and dtype")
        file = journal.Journal(path)
        results = driver.Results(file, settings)
        results.describe(environment.describe(), *asked_for(entries))
        done = [0]

        def progress(entry):
            done[0] += 1
            if sys.stderr.isatty():
                print(f"\r\033[K{done[0]} of {len(entries)}: {entry['suite']} {entry['name']}",
                      end="", file=sys.stderr)

        driver.run(entries, settings, results, asked.jobs, progress)
        others = [table.read(journal.read(other)[0]) for other in asked.against]
    except (journal.JournalError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        if sys.stderr.isatty():
            print(file=sys.stderr)
    show(table.read(file.records), others, asked.reasons)
    print(f"\n{path}")
    return 0


def show(own, others, most):
    print(table.markdown(own, *others))
    for verdict in ("wrong", "crashed", "timeout", "refused"):
        found = table.reasons(own[1], verdict, most)
        if found:
            print(f"\n{verdict}:")
        for number, words, names in found:
            print(f"{number:6} {words}  <- {', '.join(names[:4])}{' ...' * (len(names) > 4)}")


if __name__ == "__main__":
    sys.exit(main())
