"""A summary for a pull request, in GitHub's Markdown."""

from __future__ import annotations

import re

from lathe.report import ablation, answer
from lathe.report.quantities import byte_count, interval, milliseconds, plural, times

_MOST_LINES = 30  # of one table; the page has all


def text(summary, comparison, doubts):
    parts = [f"## {escape(summary.results.title)}"]
    if summary.results.about:
        parts.append(escape(summary.results.about))
    parts.append("\n".join(f"- {escape(s)}" for s in answer.sentences(summary)))
    if comparison:
        parts += _comparison(comparison)
    parts += _configurations(summary)
    for table in ablation.tables(summary):
        parts += _ablation(table)
    parts += _failures(summary)
    if doubts:
        parts.append("**Before you rely on it**\n\n" + "\n".join(f"- {escape(d)}" for d in doubts))
    parts.append(_environments(summary.results))
    return "\n\n".join(parts) + "\n"


def escape(words):
    """Text that stays text: no HTML, no table cells, no links, no mention of people or issues."""
    words = re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", " ".join(str(words).split()))
    for sign, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "@\u200b"),
                          ("://", ":\u200b//")):
        words = words.replace(sign, written)
    return words


def github_table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(escape, row)) + " |" for row in rows[:_MOST_LINES]]
    if len(rows) > _MOST_LINES:
        lines.append(f"\n{plural(len(rows) - _MOST_LINES, 'more line')} in the page.")
    return "\n".join(lines)


def _configurations(summary):
    rows = []
    for line in summary.lines:
        estimate = line.speedups.get(summary.baseline)
        cold, warm = line.first_call_ms, line.warm_first_call_ms
        rows.append([line.configuration.label, f"{line.passed}/{line.total}",
                     times(estimate and estimate.value), interval(estimate),
                     milliseconds(cold and cold.median), milliseconds(warm and warm.median),
                     times(line.memory and line.memory.value)])
    head = ["configuration", "passed", f"speed-up over {escape(summary.baseline or 'a baseline')}",
            "95 % interval", "first call", "warm", "memory saved"]
    note = ("Geometric means over the models that passed, failed rows left out; medians of first "
            "calls; memory: the baseline's peak over the candidate's.")
    return [github_table(head, rows), note]


def _ablation(table):
    head = ["taken out", *(escape(f"{column}: time, 95 % interval") for column in table.columns)]
    rows = [["nothing (speed-up)", *(times(value) for value in table.full)]]
    for name, cells in table.rows:
        rows.append([name, *(f"{times(c.slowdown and c.slowdown.value)} ({interval(c.slowdown)})"
                             for c in cells)])
    return [f"**One taken out: {escape(table.title)}**", github_table(head, rows)]


def _comparison(comparison):
    counts = {verdict: len(comparison.of(verdict))
              for verdict in ("faster", "slower", "broke", "mended")}
    words = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
    mean = comparison.geomean
    parts = [f"**Against {escape(comparison.earlier.results.path.name)}**: {words}; "
             f"{times(mean and mean.value)} as fast over all models ({interval(mean)})."]
    rows = []
    for verdict in ("broke", "slower", "mended", "faster"):
        for change in comparison.of(verdict)[:10]:
            rows.append([verdict, change.now.model, change.now.configuration.label,
                         times(change.ratio and change.ratio.value),
                         interval(change.ratio) if change.ratio else change.now.row.reason[:120]])
    if rows:
        head = ["", "model", "configuration", "now / before", "95 % interval, or why"]
        parts.append(github_table(head, rows))
    return parts + [escape(note) for note in comparison.notes]


def _failures(summary):
    failed = [one for one in summary.measured if not one.row.passed]
    if not failed:
        return []
    rows = [[one.model, one.configuration.label, one.row.status_word, one.row.reason[:160]]
            for one in failed]
    return [f"<details><summary>{plural(len(failed), 'row')} failed</summary>\n\n"
            + github_table(["model", "configuration", "what", "reason"], rows) + "\n\n</details>"]


def _environments(results):
    found = []
    for entry in results.environments.values():
        packages = entry.get("packages")
        torch = packages.get("torch") if isinstance(packages, dict) else None
        memory = entry.get("memory_bytes")
        memory = memory if isinstance(memory, (int, float)) else None
        words = [("", entry.get("cpu")), ("", entry.get("gpu")), ("cores: ", entry.get("cores")),
                 ("", memory and byte_count(memory)), ("", entry.get("os")),
                 ("Python ", entry.get("python")), ("torch ", torch),
                 ("Lathe ", entry.get("lathe"))]
        found.append(", ".join(f"{name}{word}" for name, word in words if word))
    return "Measured on " + escape("; ".join(found) or "an unknown machine") + "."
