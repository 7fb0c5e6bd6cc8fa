"""The figures of one run or several: verdicts by suite, what is worst, why, and who differs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from lathe.conformance.outcomes import VERDICTS
from lathe.report.quantities import plural

# What suites are called by, the first first; others follow by name.
_ORDER = ("ops", "modules", "models", "examples", "behaviour", "errors", "graphs")
MOST_WORST = 60
_MOST_COMBINATIONS = 60
_MOST_WORDS = 160  # characters of a reason


@dataclass
class Entry:
    """An operator, module or model in one dtype."""

    suite: str
    name: str
    label: str  # the name without its configuration, where that is clear
    dtype: str

    @property
    def key(self):
        return self.suite, self.name, self.dtype


@dataclass
class Asked:
    """One case, and what each run made of it; None where a run was not asked."""

    entry: Entry
    number: int
    found: list

    @property
    def given(self):
        return next((case.given for case in self.found if case and case.given), "")


@dataclass
class Line:
    """Verdicts of each run over some cases."""

    suite: str
    dtype: str
    counts: list[Counter]


@dataclass
class Reason:
    """Words that cases of one run have in common, numbers aside."""

    number: int  # its place in the page
    run: int
    verdict: str
    words: str
    count: int
    entries: list[Entry]  # that have it, those with most of its cases first


@dataclass
class Comparison:
    labels: list[str]  # of the runs, no two alike
    runs: list
    cases: list[Asked]
    lines: list[Line]
    totals: list[Counter]
    worst: list[tuple[Entry, list[Counter]]]  # where most cases do not agree
    reasons: list[Reason]
    combinations: list[tuple[tuple, int]]  # verdicts of the runs, how many cases have them
    doubts: list[str]


def counted(counts):
    """Cases that a run answers for: what PyTorch has no graph of is none."""
    return sum(counts.values()) - counts["untraced"]


def missed(counts):
    return counted(counts) - counts["agrees"]


def percent(part, whole):
    """With as many digits as it takes not to call 100 % what is not."""
    if not whole:
        return "–"
    digits = 0 if part in (0, whole) else 1
    while part < whole and f"{100 * part / whole:.{digits}f}".startswith("100") and digits < 4:
        digits += 1
    return f"{100 * part / whole:.{digits}f} %"


def compare(runs):
    """All figures of runs, which stand side by side in this order."""
    labels = _labels(runs)
    cases = _cases(runs)
    by_entry, by_line, together = {}, {}, Counter()
    for case in cases:
        line = case.entry.suite, case.entry.dtype
        for table, key in ((by_entry, case.entry.key), (by_line, line)):
            for counts, found in zip(table.setdefault(key, [Counter() for _ in runs]), case.found):
                if found:
                    counts[found.verdict] += 1
        together[tuple(found and found.verdict for found in case.found)] += 1
    entries = {case.entry.key: case.entry for case in cases}
    worst = [(entries[key], counts) for key, counts in by_entry.items() if max(map(missed, counts))]
    worst.sort(key=lambda one: -max(map(missed, one[1])))
    totals = [sum((counts[i] for counts in by_line.values()), Counter()) for i in range(len(runs))]
    return Comparison(labels, runs, cases, [Line(*key, counts) for key, counts in by_line.items()],
                      totals, worst[:MOST_WORST], _reasons(cases, len(runs)),
                      together.most_common(_MOST_COMBINATIONS), _doubts(runs, labels))


def _labels(runs):
    """The backends' names, with the files' where two are the same; safe as a word to search by."""
    names = [run.backend for run in runs]
    labels = []
    for run in runs:
        twice = names.count(run.backend) > 1
        label = f"{run.backend} {run.path.name.split('.')[0]}" if twice else run.backend
        label = re.sub(r"[^\w.-]+", "_", label)[:60] or "run"
        while label in labels or label in ("suite", "name", "dtype", "case", "why"):
            label += "+"
        labels.append(label)
    return labels


def _cases(runs):
    names = defaultdict(set)
    for run in runs:
        for suite, name, _, _ in run.cases:
            names[suite, name.partition("{")[0]].add(name)
    entries = {}

    def entry(suite, name, dtype):
        short = name.partition("{")[0]
        label = short if short and len(names[suite, short]) == 1 else name
        return entries.setdefault((suite, name, dtype), Entry(suite, name, label, dtype))

    keys = {key for run in runs for key in run.cases}
    order = {suite: i for i, suite in enumerate(_ORDER)}
    keys = sorted(keys, key=lambda k: (order.get(k[0], len(order)), k[0], k[2], k[1], k[3]))
    return [Asked(entry(*key[:3]), key[3], [run.cases.get(key) for run in runs]) for key in keys]


def _reasons(cases, runs):
    """Of every verdict but "agrees", the commonest first; wrong ones before refusals."""
    found = defaultdict(Counter)
    for case in cases:
        for run, one in enumerate(case.found):
            if one and one.verdict != "agrees":
                found[run, one.verdict, reason_of(one)][case.entry.key] += 1
    entries = {case.entry.key: case.entry for case in cases}
    order = {verdict: i for i, verdict in enumerate(VERDICTS)}
    keys = sorted(found, key=lambda k: (k[0], order.get(k[1], -1), -found[k].total(), k[2]))
    return [Reason(number, *key, found[key].total(),
                   [entries[name] for name, _ in found[key].most_common()])
            for number, key in enumerate(keys)]


def reason_of(case):
    """A case's words without its numbers."""
    words = re.sub(r"\d+", "N", case.words)
    if len(words) > _MOST_WORDS:
        words = words[:_MOST_WORDS].rpartition(" ")[0] + " ..."
    return words or "no reason was recorded"


def _doubts(runs, labels):
    found = [trouble for run in runs for trouble in run.troubles]
    for run, label in zip(runs, labels):
        found += _of_one(run, label)
    if len(runs) > 1:
        found += _of_several(runs, labels)
    return found


def _of_one(run, label):
    found = []
    done = Counter((suite, dtype) for suite, _, dtype in run.entries)
    for (suite, dtype), entries in run.asked.items():
        if done[suite, dtype] < entries:
            found.append(f"{label}: {entries - done[suite, dtype]:,} of {entries:,} entries of "
                         f"{suite} in {dtype} are not done. Run the same command to go on.")
    if not run.asked:
        found.append(f"{label}: the file does not say how much was asked, so nothing says whether "
                     "it is whole.")
    share = run.settings.get("share")
    if isinstance(share, (int, float)) and share < 1:
        found.append(f"{label}: a share of {share:g} of the cases, drawn by seed "
                     f"{run.settings.get('seed')}.")
    unknown = Counter(c.verdict for c in run.cases.values() if c.verdict not in VERDICTS)
    if unknown:
        words = ", ".join(f"'{verdict}'" for verdict in list(unknown)[:3])
        found.append(f"{label}: {plural(unknown.total(), 'case')} with a verdict that this Lathe "
                     f"does not know ({words}); counted, and not as agreeing.")
    if len(run.environments) != 1:
        found.append(f"{label}: the cases come from {len(run.environments) or 'unknown'} machines "
                     "or builds.")
    return found


def _of_several(runs, labels):
    found = []
    for name in ("device", "share", "seed"):
        values = [run.settings.get(name) for run in runs]
        if any(value != values[0] for value in values):
            words = ", ".join(f"{label} {value}" for label, value in zip(labels, values))
            found.append(f"The runs differ in {name}: {words}.")
    machines = [{str(e.get("cpu")) for e in run.environments.values()} for run in runs]
    if any(machine != machines[0] for machine in machines):
        found.append("The runs come from different processors.")
    torches = [{str(packages.get("torch")) for e in run.environments.values()
                if isinstance(packages := e.get("packages"), dict)} for run in runs]
    if any(torch != torches[0] for torch in torches):
        found.append("The runs had different versions of PyTorch.")
    alone = [len(run.cases.keys() - set().union(*(o.cases.keys() for o in runs if o is not run)))
             for run in runs]
    if any(alone):
        words = ", ".join(f"{n:,} of {label}" for n, label in zip(alone, labels) if n)
        found.append(f"Cases that no other run was asked: {words}. Shares are of what each was "
                     "asked.")
    return found


def shares(comparison):
    """A sentence of each run's verdicts."""
    found = []
    for label, counts in zip(comparison.labels, comparison.totals):
        rest = [f"{counts[v]:,} {word}" for v, word in (
            ("wrong", "wrong"), ("refused", "refused"), ("crashed", "ended the process"),
            ("timeout", "not done in time")) if counts[v]]
        found.append(f"{label} gives eager's answer in {counts['agrees']:,} of "
                     f"{plural(counted(counts), 'case')}"
                     + (f"; {', '.join(rest)}." if rest else "."))
    return found


def sentences(comparison):
    """What the verdicts alone do not say: who is right where another is not, and what is worst."""
    found = _who_is_right(comparison) if len(comparison.labels) > 1 else []
    for i, label in enumerate(comparison.labels):
        worst = sorted((one for one in comparison.worst if missed(one[1][i])),
                       key=lambda one: -missed(one[1][i]))[:3]
        if worst:
            words = ", ".join(f"{entry.label} ({missed(counts[i])} of {counted(counts[i])})"
                              for entry, counts in worst)
            found.append(f"Most of what {label} misses: {words}.")
    return found


def _who_is_right(comparison):
    """Of the cases that count for every run."""
    both = [case for case in comparison.cases
            if all(found and found.verdict != "untraced" for found in case.found)]
    right = Counter(tuple(f.verdict == "agrees" for f in case.found) for case in both)
    number = len(comparison.labels)
    alone = [f"{label} alone in {right[tuple(i == j for j in range(number))]:,}"
             for i, label in enumerate(comparison.labels)]
    return [f"Of {plural(len(both), 'case')} that count for each of them, all agree in "
            f"{right[(True,) * number]:,}, {', '.join(alone)}, none in "
            f"{right[(False,) * number]:,}."]


