"""The page of one run or several: one HTML file that needs no other, every case within it."""

from __future__ import annotations

import json
import urllib.parse

from lathe.conformance.outcomes import VERDICTS
from lathe.report import frame, quantities
from lathe.report.conformance import summary

_SIGNS = {"agrees": "✓", "untraced": "·", None: "–"}
_WORDS = {"untraced": "not traced", "timeout": "not done"}  # where others are their own
_MOST_ENTRIES = 6  # of a reason
_METHOD = (
    "Each case runs in a worker process, once in eager PyTorch and once through the backend. It "
    "agrees when results, and what the call wrote to its arguments, are eager's within the bounds "
    "of PyTorch's own tests of the operator, or about as near to the answer in float64 as eager's "
    "are. Error inputs agree when both raise. Of what draws random numbers only types are "
    "compared. Shares leave out what PyTorch gives no backend a graph of.")


def html(comparison):
    """The page's text; raises plots.MissingLibrary."""
    environment = frame.environment()
    environment.filters["word"] = word
    environment.globals.update(zip=zip, percentage=summary.percent, counted=summary.counted,
                               missed=summary.missed, word=word, find=find, bar=_bar)
    return environment.get_template("conformance/page.html").render(
        **frame.style_and_script(["page.css", "conformance/page.css"],
                                 ["tables.js", "conformance/page.js"]),
        title=title(comparison), labels=comparison.labels, runs=comparison.runs,
        totals=comparison.totals, lines=comparison.lines, about=_about(comparison),
        verdicts=VERDICTS, shown=[v for v in VERDICTS if v != "agrees"],
        sentences=summary.sentences(comparison), worst=comparison.worst,
        groups=_groups(comparison), combinations=comparison.combinations,
        parts=_parts(comparison), most_entries=_MOST_ENTRIES, most_worst=summary.MOST_WORST,
        doubts=comparison.doubts, facts=_facts(comparison.runs), method=_METHOD,
        number_of_cases=len(comparison.cases), sign=_sign, data=frame.in_script(_data(comparison)))


def title(comparison):
    labels = comparison.labels
    words = ", ".join(labels[:-1]) + " and " + labels[-1] if len(labels) > 1 else labels[0]
    return f"What {words} {'get' if len(labels) > 1 else 'gets'} right"


def word(verdict):
    """A verdict as a reader says it; None where a run was not asked."""
    return "not asked" if verdict is None else _WORDS.get(verdict, verdict)


def find(**what):
    """A link to the cases that have all of this, by the words that the search takes."""
    words = (f"{name}:{'none' if value is None else '_'.join(str(value).split())}"
             for name, value in what.items())
    return "#find=" + urllib.parse.quote(" ".join(words), safe=":/,()")


def _sign(verdict):
    return _SIGNS.get(verdict, "✕")


def _bar(counts):
    """The parts of what counts, for a bar: (verdict, percent)."""
    whole = summary.counted(counts)
    return [(verdict if verdict in VERDICTS else "wrong", f"{100 * n / whole:.3f}")
            for verdict, n in sorted(counts.items(), key=lambda pair: list(VERDICTS).index(pair[0])
                                     if pair[0] in VERDICTS else -1)
            if n and verdict != "untraced"] if whole else []


def _about(comparison):
    found = {}
    for run in comparison.runs:
        found.update({suite: words for suite, words in run.about.items() if words})
    return found


def _groups(comparison):
    """(label, verdict, reasons, cases) where there are any."""
    groups = {}
    for reason in comparison.reasons:
        groups.setdefault((reason.run, reason.verdict), []).append(reason)
    return [(comparison.labels[run], verdict, reasons, sum(r.count for r in reasons))
            for (run, verdict), reasons in groups.items()]


def _parts(comparison):
    """Links at the head of the page: those parts that there are."""
    return [(name, words) for name, words, there in (
        ("answer", "answer", True), ("suites", "suites", True),
        ("differ", "who differs", len(comparison.labels) > 1),
        ("worst", "what is worst", comparison.worst), ("reasons", "why", comparison.reasons),
        ("all", "every case", True), ("doubts", "before you rely on it", True)) if there]


def _facts(runs):
    """(name, words of each run): what was run, and where."""
    found = {}
    for i, run in enumerate(runs):
        facts = [("file", run.path.name), ("backend", run.backend)]
        facts += [(name, json.dumps(value)) for name, value in run.settings.items()]
        for machine in frame.environment_tables(run.environments.values()):
            facts += machine
        for name, words in facts:
            of_run = found.setdefault(name, [[] for _ in runs])[i]
            if words not in of_run:
                of_run.append(words)
    return [(name, ["; ".join(words) for words in all_words]) for name, all_words in found.items()]


def _speed(speedup):
    if speedup is None:
        return ""
    low, median, high = map(quantities.times, speedup)
    return f"{median} as fast as eager ({low} to {high} in eight of ten pairs of calls)"


def _data(comparison):
    """What the search works on. Words that many cases share are there once."""
    words, places = [], {}

    def place(text):
        if text not in places:
            places[text] = len(words)
            words.append(text)
        return places[text]

    reasons = {(r.run, r.verdict, r.words): r.number for r in comparison.reasons}
    entries, at, cases = [], {}, []
    for case in comparison.cases:
        key = case.entry.key
        if key not in at:
            at[key] = len(entries)
            entries.append([case.entry.suite, case.entry.label, case.entry.name, case.entry.dtype])
        found = [one and [one.verdict, *(
            () if one.verdict == "agrees" and not one.words and not one.speedup else
            (place(one.words), reasons.get((run, one.verdict, summary.reason_of(one)), -1),
             _speed(one.speedup)))] for run, one in enumerate(case.found)]
        cases.append([at[key], case.number, place(case.given), found])
    return {"labels": comparison.labels, "backends": [run.backend for run in comparison.runs],
            "words": words, "entries": entries, "cases": cases}
