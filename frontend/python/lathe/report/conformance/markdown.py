"""One run or several as a summary for a pull request, in GitHub's Markdown."""

from __future__ import annotations

from lathe.report.conformance import page, summary
from lathe.report.markdown import escape, github_table

_VERDICTS = ("wrong", "refused", "crashed", "timeout", "untraced")


def text(comparison):
    parts = [f"## {escape(page.title(comparison))}",
             "\n".join(f"- {escape(s)}" for s in summary.shares(comparison)
                       + summary.sentences(comparison)),
             _suites(comparison)]
    if len(comparison.labels) > 1:
        parts.append(github_table(["cases", *map(escape, comparison.labels)],
                           [[f"{n:,}", *map(page.word, found)]
                            for found, n in comparison.combinations]))
    parts += _reasons(comparison)
    if comparison.doubts:
        parts.append("**Before you rely on it**\n\n"
                     + "\n".join(f"- {escape(d)}" for d in comparison.doubts))
    return "\n\n".join(parts) + "\n"


def _suites(comparison):
    head = ["suite", "dtype", "backend", "agrees", "of", *map(page.word, _VERDICTS)]
    rows = []
    for line in comparison.lines:
        for label, counts in zip(comparison.labels, line.counts):
            whole = summary.counted(counts)
            rows.append([line.suite, line.dtype, label, summary.percent(counts["agrees"], whole),
                         f"{whole:,}", *(f"{counts[v]:,}" for v in _VERDICTS)])
    return github_table(head, rows)


def _reasons(comparison):
    rows = [[f"{reason.count:,}", comparison.labels[reason.run], page.word(reason.verdict),
             reason.words, ", ".join(entry.label for entry in reason.entries[:3])]
            for reason in comparison.reasons if reason.verdict != "untraced"]
    if not rows:
        return []
    head = ["cases", "backend", "what", "reason", "such as"]
    return [f"<details><summary>{len(rows):,} reasons</summary>\n\n{github_table(head, rows)}\n\n"
            "</details>"]
