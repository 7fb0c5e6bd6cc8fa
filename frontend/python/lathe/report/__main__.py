"""python -m lathe.report: what sweeps and runs of conformance found, as a page or tables."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from pathlib import Path

from lathe import _archive
from lathe.report import comparison, dashboard_csv, markdown, page, plots, results_file, summary
from lathe.report import ablation, journal_file, trust
from lathe.report.conformance import markdown as conformance_markdown
from lathe.report.conformance import page as conformance_page
from lathe.report.conformance import run_file
from lathe.report.conformance import summary as conformance

FORMATS = (".html", ".csv", ".md")


class UserError(Exception):
    """A wrong request; the message says what was found and what was expected."""


def main(words=None):
    """The exit code: 0, or 2 when the input is wrong."""
    arguments = _parser().parse_args(words)
    try:
        outputs = _check(arguments)
        for path in _report(arguments, outputs):
            print(path)
    except (UserError, results_file.ResultsError, plots.MissingLibrary) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="lathe report", description=__doc__.split(": ", 1)[1],
        epilog="Without -o the page is written beside the first of RESULTS. A .csv has the columns "
               "of PyTorch's dashboard, one file for each configuration.")
    parser.add_argument("results", metavar="RESULTS", type=Path, nargs="+",
                        help="what ./lathe sweep wrote (results/NAME.sweep.jsonl) or ./lathe run "
                             "(results/NAME.json); or what python -m lathe.conformance wrote "
                             "(results/conformance-NAME.jsonl), several of which stand side by "
                             "side")
    parser.add_argument("--against", metavar="EARLIER", type=Path,
                        help="an earlier file: what became faster or slower, broke or was mended")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, action="append", default=[],
                        help="a .html, .csv or .md to write; may be given several times")
    parser.add_argument("--svg", metavar="FOLDER", type=Path,
                        help="also write the plots as files, for a paper")
    return parser


def _check(arguments):
    """The files to write; refuses what cannot work before anything is read."""
    inputs = [*arguments.results, *([arguments.against] if arguments.against else [])]
    outputs = arguments.output or ([] if arguments.svg else [_beside(arguments.results[0])])
    for path in outputs:
        if path.suffix not in FORMATS:
            near = difflib.get_close_matches(path.suffix, FORMATS, 1, 0.4) or [".html"]
            raise UserError(f"{path}: the format '{path.suffix}' is not known; expected one of "
                            f"{', '.join(FORMATS)}; did you mean '{path.stem}{near[0]}'?")
        if not path.parent.is_dir():
            raise UserError(f"{path}: there is no folder '{path.parent}' to write it to")
        if path.is_dir():
            raise UserError(f"{path}: is a folder; expected the name of a file")
        if any(path.resolve() == source.resolve() for source in inputs):
            raise UserError(f"{path}: would overwrite the results")
    if arguments.svg and arguments.svg.exists() and not arguments.svg.is_dir():
        raise UserError(f"{arguments.svg}: is a file; --svg expects a folder")
    if any(not source.exists() for source in inputs):
        source = next(source for source in inputs if not source.exists())
        raise UserError(f"{source}: no such file{_nearest(source)}")
    return outputs


def _beside(results):
    return results.with_name(results.name.split(".")[0] + ".html")


def _nearest(path):
    names = [p.name for p in path.parent.glob("*.json*")] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, names, 1)
    return f"; did you mean '{path.parent / near[0]}'?" if near else ""


def _report(arguments, outputs):
    """Writes everything and gives the paths; all is made before the first file is."""
    first, *others = arguments.results
    records, troubles = journal_file.records(first)
    if run_file.is_run(records):
        runs = [run_file.from_records(first, records, troubles), *map(run_file.read, others)]
        return _write(_conformance(runs, arguments, outputs), None)
    if others:
        raise UserError(f"{first}: holds no conformance; of sweeps a report shows one, and beside "
                        f"it an earlier one: --against {others[0]}")
    now = summary.summarise(results_file.from_records(first, records, troubles))
    compared = None
    if arguments.against:
        earlier = summary.summarise(results_file.read(arguments.against))
        compared = comparison.compare(now, earlier)
    doubts = trust.doubts(now)
    texts = {}
    for path in outputs:
        if path.suffix == ".html":
            texts[path] = page.html(now, compared, doubts)
        elif path.suffix == ".md":
            texts[path] = markdown.text(now, compared, doubts)
        else:
            texts.update(dashboard_csv.files(now, path))
    if arguments.svg:
        drawn = page.figures(now, compared, ablation.tables(now))
        if not drawn:
            raise UserError(f"{first}: has no speed-up to plot")
        for name, (_, svg) in drawn.items():
            path = arguments.svg / f"{dashboard_csv.file_name(name)}.svg"
            texts[path] = plots.standalone(svg)
    return _write(texts, arguments.svg)


def _conformance(runs, arguments, outputs):
    """The texts by path."""
    if arguments.against:
        raise UserError(f"{arguments.against}: runs of conformance stand side by side: give it as "
                        "another RESULTS, without --against")
    if arguments.svg:
        raise UserError("--svg: a page of conformance has no plots; expected -o")
    compared = conformance.compare(runs)
    write = {".html": conformance_page.html, ".md": conformance_markdown.text}
    for path in outputs:
        if path.suffix not in write:
            raise UserError(f"{path}: a {path.suffix} is of speed-ups, which conformance has none "
                            f"of; expected one of {', '.join(write)}")
    return {path: write[path.suffix](compared) for path in outputs}


def _write(texts, folder):
    try:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            with _archive.whole_file(path.resolve()) as file:  # what a link stands for
                file.write(text.encode())
    except OSError as error:
        raise UserError(f"{error.filename or 'the report'}: cannot be written: "
                        f"{error.strerror or error}") from None
    return list(texts)


if __name__ == "__main__":
    # A reader that closed the pipe has seen what it wanted.
    try:
        sys.exit(main())
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
