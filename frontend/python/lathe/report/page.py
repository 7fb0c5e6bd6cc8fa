"""The page: one HTML file that needs no other, with everything that the results say."""

from __future__ import annotations

import json

import numpy as np

from lathe.report import ablation, answer, estimates, frame, plots, quantities
from lathe.report.configurations import options_word
from lathe.report.frame import markup
from lathe.report.journal_file import number
from lathe.report.summary import error_share

_MOST_CHANGES = 50  # of one kind
_VERDICTS = [("faster", "became faster"), ("slower", "became slower"), ("broke", "broke"),
             ("mended", "were mended")]
_HEAT_WORDS = ["slower than 0.5x", "0.5 to 0.67", "0.67 to 0.83", "0.83 to 0.95", "0.95 to 1.05",
               "1.05 to 1.2", "1.2 to 1.5", "1.5 to 2", "faster than 2x"]
# What a kind of kernel (passes/kernels) mostly does, by the notebook's signs of families of ops.
_KIND_SIGNS = {
    **dict.fromkeys(("contraction", "depthwise", "attention", "matrix_tiles", "library_attention",
                     "library_convolution", "library_matmul"), "×"),
    **dict.fromkeys(("pool", "recurrence", "scan", "split_reduction"), "Σ"),
    "loops": "ƒ", "scatter": "⇄",
}
_METHOD = (
    "A row's speed-up is the median of the ratios of its paired samples, which were taken next to "
    f"each other. Its interval is the middle 95 % of {estimates.RESAMPLES:,} bootstrap medians. "
    "Over models the geometric mean resamples the models first and then each model's pairs, so it "
    "says how another suite of such models would come out. Seeds are fixed: the same file gives "
    "the same page.")


def html(summary, comparison, doubts):
    """The page's text; raises plots.MissingLibrary."""
    environment = frame.environment()
    environment.globals.update(
        {name: getattr(quantities, name)
         for name in ("times", "interval", "milliseconds", "byte_count", "share")},
        figure=_figure, range=_range, width=lambda ends: ends and ends[1] - ends[0],
        error_share=error_share,
        failures=lambda line: answer.failure_counts([one.row for one in line.measured]))
    tables = ablation.tables(summary)
    drawn = figures(summary, comparison, tables)
    return environment.get_template("page.html").render(
        **frame.style_and_script(["page.css"], ["tables.js", "page.js"]),
        results=summary.results, baseline=summary.baseline or "",
        baselines=summary.baselines, lines=summary.lines, measured=summary.measured,
        cards=answer.cards(summary), sentences=answer.sentences(summary), doubts=doubts,
        comparison=comparison, verdicts=_VERDICTS, changes=_changes(comparison),
        most_changes=_MOST_CHANGES, tables=tables, plots=_in_page(drawn), heat_words=_HEAT_WORDS,
        parts=_parts(comparison, drawn, tables), reasons=_reasons(summary),
        environments=frame.environment_tables(summary.results.environments.values()),
        method=_METHOD, details=frame.in_script([_detail(one) for one in summary.measured]))


def figures(summary, comparison, tables):
    """By file name without its ending: (title, SVG) of all plots that have something to show."""
    baseline = summary.baseline
    if baseline is None:
        return {}
    drawn = {}
    rows = [(line.configuration.label, line.speedups[baseline],
             [one.speedups[baseline].value for one in line.measured
              if one.row.passed and baseline in one.speedups])
            for line in summary.lines if line.speedups[baseline]]
    if rows:
        drawn["speedups"] = "", plots.draw(
            plots.forest(rows, f"speed-up over {baseline}", f"as fast as {baseline}"))
    calls = [(line.configuration.label, line.first_call_ms and line.first_call_ms.median,
              line.warm_first_call_ms and line.warm_first_call_ms.median)
             for line in summary.lines if line.first_call_ms or line.warm_first_call_ms]
    if calls:
        drawn["compile_times"] = "", plots.draw(plots.compile_times(calls))
    for panel, spec in _heat_maps(summary).items():
        drawn[f"heat_map_{panel}".rstrip("_").replace(" ", "_")] = panel, plots.draw(spec)
    taken = [(f"{name}, {column}", cell.slowdown, [])
             for table in tables[:1] for name, cells in table.rows
             for column, cell in zip(table.columns, cells) if cell.slowdown]
    if taken:
        drawn["ablation"] = "", plots.draw(
            plots.forest(taken, "time without / with everything", "no difference"))
    if comparison and comparison.configurations:
        rows = [(label, estimate, []) for label, estimate in comparison.configurations]
        drawn["changes"] = "", plots.draw(plots.forest(rows, "speed-up now / before", "no change"))
    return drawn


def _heat_maps(summary):
    """A specification for each panel; models and configurations best first."""
    baseline, panels = summary.baseline, {}
    for line in summary.lines:
        panels.setdefault(line.configuration.panel, []).append(line)
    made = {}
    for panel, lines in panels.items():
        cells, logs = {}, {}
        # Equal short labels would share a column: then the whole ones stand there.
        labels = [line.configuration.short_label for line in lines]
        if len(set(labels)) < len(labels):
            labels = [line.configuration.label for line in lines]
        for label, line in zip(labels, lines):
            for one in line.measured:
                estimate = one.speedups.get(baseline)
                cells[one.model, label] = one, estimate and estimate.value
                if estimate and one.row.passed:
                    logs.setdefault(one.model, []).append(np.log(estimate.value))
        models = sorted({model for model, _ in cells},
                        key=lambda m: (-np.mean(logs[m]) if m in logs else np.inf, m))
        made[panel] = plots.heat_map(models, labels, cells)
    return made


def _in_page(drawn):
    safe = markup()
    maps = [(title, safe(svg)) for name, (title, svg) in drawn.items()
            if name.startswith("heat_map")]
    named = {name: safe(drawn[name][1]) if name in drawn else ""
             for name in ("speedups", "compile_times", "ablation", "changes")}
    return {**named, "heat_maps": maps}


def _parts(comparison, drawn, tables):
    """Links at the head of the page: those parts that there are."""
    return [(name, word) for name, word, there in (
        ("answer", "answer", True), ("changes", "changes", comparison),
        ("configurations", "configurations", True),
        ("heat", "heat map", any(name.startswith("heat_map") for name in drawn)),
        ("ablation", "one taken out", tables),
        ("compile", "compile time", "compile_times" in drawn),
        ("accuracy", "accuracy", True), ("all", "every row", True),
        ("doubts", "before you rely on it", True)) if there]


def _changes(comparison):
    """The largest of each kind."""
    if comparison is None:
        return []
    return [change for verdict in ("broke", "slower", "mended", "faster")
            for change in comparison.of(verdict)[:_MOST_CHANGES]]


def _reasons(summary):
    """(status word, reason, rows), what most rows have first."""
    groups = {}
    for one in summary.measured:
        if not one.row.passed:
            groups.setdefault((one.row.status_word, one.row.reason), []).append(one)
    return sorted(((*key, members) for key, members in groups.items()),
                  key=lambda group: -len(group[2]))


def _detail(one):
    """What a row shows when it is opened; all of it text, but for the samples."""
    row = one.row
    ms, size = quantities.milliseconds, quantities.byte_count
    facts = [(f"speed-up over {name}",
              f"{quantities.times(e.value)}, 95 % {quantities.interval(e)}, {e.count} pairs")
             for name, e in one.speedups.items()]
    facts += [(word, text) for word, text, value in (
        ("first call, cold", ms(row.first_call_ms), row.first_call_ms),
        ("first call, warm", ms(row.warm_first_call_ms), row.warm_first_call_ms),
        ("compiling, inside the backend", ms(row.compile_ms), row.compile_ms),
        ("peak memory", size(row.peak_memory_bytes), row.peak_memory_bytes),
        *((f"peak memory of {name}", size(value), value)
          for name, value in row.against_peak_memory_bytes.items()),
        *((word, quantities.error(row.accuracy[key]), row.accuracy[key]) for word, key in (
            ("largest error", "max_abs"), ("largest relative error", "max_rel"),
            ("tolerance", "tolerance"))),
        ("cosine", f"{row.accuracy['cosine']}", row.accuracy["cosine"]),
        ("rule of accuracy", row.accuracy["rule"], row.accuracy["rule"] or None),
        ("graphs", f"{row.graphs}", row.graphs),
        ("graph breaks", f"{row.graph_breaks}", row.graph_breaks),
        ("the whole job", ms(row.seconds and row.seconds * 1e3), row.seconds),
        ("attempts", f"{row.attempts}", row.attempts)) if value is not None]
    facts += [(name, options_word(value) or "none" if name == "options" else json.dumps(value))
              for name, value in row.settings.items()]
    facts += [("source", row.source), ("environment", row.environment), ("job", row.job)]
    return {"reason": row.reason, "details": row.details, "facts": facts,
            "samples": [(name, _rounded(values)) for name, values in row.samples.items()],
            "kernels": [_kernel(kernel) for kernel in row.kernels],
            "fallbacks": [[_word(f.get(k)) for k in ("op", "count", "line", "reason")]
                          for f in row.fallbacks or []]}


def _kernel(kernel):
    times = [quantities.milliseconds(number(kernel.get(k))) for k in ("ms", "predicted_ms")]
    kind, count = _word(kernel.get("kind")), number(kernel.get("count")) or 1
    sign = _KIND_SIGNS.get(kind)
    label = _word(kernel.get("label")) + (f" x{count:.0f}" if count > 1 else "")
    return [label, f"{sign} {kind}" if sign else kind,
            _word(kernel.get("ops")), *times, _word(kernel.get("line"))]


def _word(value):
    if value is None:
        return quantities.MISSING
    return ", ".join(map(_word, value)) if isinstance(value, list) else str(value)


def _rounded(values):
    return [float(f"{v:.4g}") if np.isfinite(v) else None for v in values]


def _range(spread_ms):
    if spread_ms is None:
        return quantities.MISSING
    return " to ".join(map(quantities.milliseconds, spread_ms))


def _figure(svg, caption):
    if not svg:
        return ""
    return markup()('<figure><figcaption>{}</figcaption><div class="wide" tabindex="0" '
                     'role="region" aria-label="{}">{}</div></figure>'
                     ).format(caption, caption, svg)
