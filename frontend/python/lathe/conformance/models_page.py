"""Writes MODELS.md from journals of --suite models --suite zoo:

    python -m lathe.conformance --backend export --option threads=1 --suite models --suite zoo
    python -m lathe.conformance.models_page results/conformance-export.jsonl
"""

import argparse
import json
import math
import pathlib
import re
import sys

from lathe.sweep import journal

HERE = pathlib.Path(__file__).parent
PAGE = HERE / "MODELS.md"
SUITES = {"models": "Small models with random weights", "zoo": "The graphs of `tests/zoo`"}
# Of a refusal: the graph cannot be read. Others come from compiling it.
OF_IMPORT = ("unsupported-op", "bad-model", "bad-archive", "schema-version", "shape-mismatch",
             "dtype-mismatch", "type-mismatch", "attribute", "operand-count", "dim-range")
COLUMNS = ["model", "imports", "compiles", "agrees", "against eager"]
SLOWER = 0.95  # times eager's speed, below which a row counts as slower
HEAD = """# What becomes of each model

{figures}

Written by `python -m lathe.conformance.models_page` from a run of `python -m lathe.conformance
--backend export --option threads=1 --suite models --suite zoo`: each model is exported by
torch.export, its archive imported and compiled, its results held against eager PyTorch's, and both
timed by turns. `against eager` is eager's time of a processor over Lathe's: the median, and the
10th and 90th percentile, of at least 7 pairs of calls. {machine}.

`tests/conformance/models_page_test` fails when this page is not of the models that there are, and
`models_test` (`./lathe test --all`) when a row says of a model what is not so.
"""


def label(name):
    """A model without its configuration, which stands in models.json."""
    return name.partition("{")[0]


def row(case):
    """The cells of a case: model, imports, compiles, agrees, against eager."""
    verdict, words = case["verdict"], case["words"]
    name, yes = f"`{label(case['name'])}`", ["yes"] * 3
    if verdict == "agrees":
        low, middle, high = case["measured"]["speedup"]
        return [name, *yes, f"{middle:.2f} ({low:.2f} to {high:.2f})"]
    said = " ".join(words.partition(", first at ")[0].split())  # not where a package lies
    why = f"no: {said[:120]}".replace("|", "\\|")
    if verdict == "refused":
        code = re.search(r"error\[([\w-]+)\]", words)
        cells = [why, "", ""] if code and code[1] in OF_IMPORT else ["yes", why, ""]
    elif verdict == "untraced":
        cells = [why.replace("no:", "PyTorch exports no graph:"), "", ""]
    else:
        cells = ["yes", "yes", f"{verdict}: {why[4:]}"]
    return [name, *cells, ""]


def figures(cases):
    """How many of the models do what, in a sentence."""
    rows = [row(case) for case in cases]
    counts = [sum(cells[k] == "yes" for cells in rows) for k in (1, 2, 3)]
    speedups = [case["measured"]["speedup"][1] for case in cases if case["verdict"] == "agrees"]
    mean = math.exp(sum(map(math.log, speedups)) / len(speedups)) if speedups else 0
    slower = sum(speedup < SLOWER for speedup in speedups)
    return (f"Of {len(rows)} models {counts[0]} import, {counts[1]} compile and {counts[2]} agree; "
            f"they take 1/{mean:.2f} of eager's time (geometric mean), and {slower} are slower "
            "than eager.")


def page(records):
    """The text; of a case the last record counts."""
    cases = {(r["suite"], r["name"]): r for r in records if r.get("kind") == "case"}
    machine = next((r for r in records if r.get("kind") == "environment"), {})
    torch = machine.get("packages", {}).get("torch", "?")
    words = f"{machine.get('cpu', 'An unknown processor')}, one thread, PyTorch {torch}"
    parts = [HEAD.format(figures=figures(cases.values()), machine=words)]
    for suite, title in SUITES.items():
        of_suite = [case for (of, _), case in cases.items() if of == suite]
        of_suite.sort(key=lambda case: case["name"].lower())
        if of_suite:
            lines = [COLUMNS, ["---"] * len(COLUMNS), *map(row, of_suite)]
            table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
            parts.append(f"## {title}\n\n{table}")
    return "\n".join(parts)


def rows_of(text):
    """{model: [imports, compiles, agrees, against eager]} of each heading of the page."""
    found, rows = {}, None
    for line in text.splitlines():
        if line.startswith("## "):
            rows = found[line[3:]] = {}
        elif rows is not None and line.startswith("| `"):
            name, *cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            rows[name.strip("`")] = cells
    return found


def models():
    """The models that there have to be rows for: those of models.json, by their labels."""
    return [label(name) for name in json.loads((HERE / "models.json").read_text())]


def main(words=None):
    p = argparse.ArgumentParser(prog="python -m lathe.conformance.models_page",
                                description="Writes MODELS.md from journals of conformance.")
    p.add_argument("journals", nargs="+", metavar="JOURNAL")
    p.add_argument("-o", "--output", type=pathlib.Path, default=PAGE)
    asked = p.parse_args(words)
    records = [record for path in asked.journals for record in journal.read(path)[0]]
    if not any(r.get("kind") == "case" and r.get("suite") in SUITES for r in records):
        print("error: no model in these journals", file=sys.stderr)
        return 2
    asked.output.write_text(page(records))
    print(asked.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
