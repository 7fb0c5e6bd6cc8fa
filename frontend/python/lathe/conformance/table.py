"""What a run found, as text: by suite and dtype, and the reasons of what does not agree."""

import collections
import re

from lathe.conformance.outcomes import COUNTED


def read(records):
    """(backend, cases) of a journal's records; the last record of a case counts."""
    header = next((r for r in records if r.get("kind") == "conformance"), {})
    cases = {}
    for record in records:
        if record.get("kind") == "case":
            cases[tuple(record[k] for k in ("suite", "name", "dtype", "case"))] = record
    return header.get("backend", "?"), list(cases.values())


def counts(cases):
    """Verdicts by (suite, dtype), in the order of the suites."""
    found = collections.defaultdict(collections.Counter)
    for case in cases:
        found[case["suite"], case["dtype"]][case["verdict"]] += 1
    return found


def markdown(*runs):
    """A table with the runs side by side: (backend, cases) each."""
    names = [name for name, _ in runs]
    head = ["suite", "dtype"] + [f"{n} {v}" for n in names for v in ("agrees", "wrong", "refused",
                                                                    "crashed", "not traced")]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    all_counts = [counts(cases) for _, cases in runs]
    for key in sorted({k for c in all_counts for k in c}):
        cells = list(key)
        for found in all_counts:
            c = found[key]
            total = sum(c[v] for v in COUNTED)
            part = f"{100 * c['agrees'] / total:.1f} %" if total else "-"
            cells += [f"{c['agrees']} of {total} ({part})", str(c["wrong"]), str(c["refused"]),
                      str(c["crashed"] + c["timeout"]), str(c["untraced"])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def reasons(cases, verdict, most=30):
    """The commonest words of a verdict, numbers left out, with how often and where."""
    found, names = collections.Counter(), collections.defaultdict(set)
    for case in cases:
        if case["verdict"] == verdict:
            words = re.sub(r"\d+", "N", case["words"])[:160]
            found[words] += 1
            names[words].add(case["name"])
    return [(n, words, sorted(names[words])) for words, n in found.most_common(most)]
