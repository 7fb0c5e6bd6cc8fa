"""The plots of a report: Vega-Lite specifications, drawn as SVG that follows the page's colours.

Colours are CSS variables of the page (page.css), so a plot turns dark with it; `standalone` gives
a file its own. Marks carry numbers or signs as well: colour is never the only one to say something.
"""

from __future__ import annotations

import re
from importlib import resources
from math import log2

from lathe.report.quantities import MISSING, interval, times

INSTALL = "pip install vl-convert-python==1.9.0.post1"
_FONT = "sans-serif"  # to measure by; page.css says what it is drawn in
_CONFIG = {
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {"labelColor": "var(--ink)", "titleColor": "var(--soft)", "gridColor": "var(--line)",
             "domain": False, "ticks": False, "labelFontSize": 12, "titleFontSize": 12,
             "titleFontWeight": "normal", "labelFont": _FONT, "titleFont": _FONT,
             "labelLimit": 340, "labelPadding": 6},
    "text": {"font": _FONT, "fontSize": 11.5, "color": "var(--ink)"},
}
# Upper ends of the classes of a heat map, around 1; ratios and their reciprocals mirror each other.
_CLASSES = [1 / 2, 1 / 1.5, 1 / 1.2, 1 / 1.05, 1.05, 1.2, 1.5, 2]
_STATUS_SIGNS = {"fail_accuracy": "✕ wrong", "timeout": "✕ time", "out_of_memory": "✕ memory",
                 "crashed": "✕ crash", "refused": "✕ refused", "fail_to_load": "✕ load",
                 "fail_to_run": "✕ run"}
_MOST_LINES = 60
# Pixels of a character. The library measures with its own font, and a reader's may be wider.
_CHARACTER = 7.4
_WIDTH = 520  # of the space in which ratios and times are drawn


class MissingLibrary(Exception):
    """What a page needs and this Python lacks, with the command that brings it."""


def draw(spec):
    """The specification as SVG text without a size, background or address of its own."""
    try:
        import vl_convert
    except ImportError:
        raise MissingLibrary(f"drawing plots needs vl-convert-python: {INSTALL}") from None
    spec = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": _CONFIG,
            "padding": 4, **spec}
    svg = vl_convert.vegalite_to_svg(spec, vl_version="5.20", allowed_base_urls=[])
    # A link within the page becomes absolute in the library.
    svg = re.sub(r'xlink:href="https?://[^"#]*#', 'href="#', svg)
    # Thousands of marks say the same of themselves, which the page's style says once.
    return re.sub(f' (font-family="{_FONT}"|opacity="1"|aria-roledescription="[^"]*")', "", svg)


def standalone(svg):
    """A file's text: the colours that a page would give it are inside."""
    css = resources.files("lathe.report").joinpath("page.css").read_text(encoding="utf-8")
    colours = css[: css.index("/* So far also in plots that stand alone. */")]
    head = svg.index(">") + 1
    style = f"<style>{colours}svg{{background:var(--bg)}}</style>"
    return re.sub(r'<a href="#[^"]*">|</a>', "", svg[:head] + style + svg[head:])


def forest(rows, title, baseline_word):
    """Ratios with their intervals on a logarithmic axis, each a line: label, estimate, points.

    `rows` are (label, estimate, values of single models); those beyond the first 60 are left out.
    """
    values = []
    for label, estimate, points in rows[:_MOST_LINES]:
        values.append({"label": label, "value": estimate.value, "low": estimate.low,
                       "high": estimate.high,
                       "text": f"{times(estimate.value)} ({interval(estimate)})"})
        values += [{"label": label, "point": point} for point in points]
    numbers = [v[k] for v in values for k in ("value", "low", "high", "point") if v.get(k)]
    low, high = min([1, *numbers]) / 1.02, max([1, *numbers]) * 1.02
    y = _lines(label for label, _, _ in rows[:_MOST_LINES])
    x = {"type": "quantitative", "scale": {"type": "log", "domain": [low, high], "nice": False},
         "title": title,
         "axis": {"values": _ticks(low, high), "format": "~g", "labelOverlap": True}}
    has = "isValid(datum.{})".format
    layers = [
        {"mark": {"type": "rule", "color": "var(--soft)", "strokeDash": [3, 3]},
         "data": {"values": [{"one": 1}]}, "encoding": {"x": {**x, "field": "one"}}},
        {"transform": [{"filter": has("point")}],
         "mark": {"type": "tick", "color": "var(--soft)", "opacity": 0.55, "size": 9,
                  "thickness": 1.2, "aria": False},
         "encoding": {"x": {**x, "field": "point"}, "y": y}},
        {"transform": [{"filter": has("low")}],
         "mark": {"type": "rule", "color": "var(--accent)", "strokeWidth": 3, "strokeCap": "round"},
         "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}},
        {"transform": [{"filter": has("value")}],
         "mark": {"type": "point", "shape": "circle", "filled": True, "color": "var(--accent)",
                  "stroke": "var(--panel)", "strokeWidth": 1.5, "size": 70, "opacity": 1},
         "encoding": {"x": {**x, "field": "value"}, "y": y}},
        {"transform": [{"filter": has("text")}],
         "mark": {"type": "text", "align": "left", "dx": 12},
         "encoding": {"x": {"value": _WIDTH}, "y": y, "text": {"field": "text"}}},
    ]
    return {"description": f"{title}, with 95 % intervals; dashed: {baseline_word}",
            "padding": {"left": 4, "top": 4, "bottom": 4, "right": 60},
            "data": {"values": values}, "width": _WIDTH, "height": {"step": 22}, "layer": layers}


def heat_map(models, columns, cells):
    """Models by configurations. `cells` maps (model, column) to a measured row and its ratio.

    Colour says how far from 1, the number says it too; a failure says what failed.
    """
    values = []
    for model in models:
        for column in columns:
            one, ratio = cells.get((model, column), (None, None))
            values.append({"model": model, "column": column, **_cell(one, ratio)})
    longest = _CHARACTER * min(46, max(map(len, columns)))
    x = {"field": "column", "type": "nominal", "sort": None, "title": None,
         "axis": {"grid": False, "orient": "top", "labelAngle": -40, "labelAlign": "left",
                  "minExtent": 0.65 * longest + 12}}
    y = {**_lines(models), "field": "model"}
    return {
        "description": "Speed-up of each model in each configuration",
        "padding": {"left": 4, "top": 4, "bottom": 4, "right": max(4, 0.77 * longest - 60)},
        "data": {"values": values}, "width": {"step": 62}, "height": {"step": 22},
        "encoding": {"x": x, "y": y},
        "layer": [
            {"mark": {"type": "rect", "stroke": "var(--panel)", "strokeWidth": 1.5,
                      "aria": False},
             "encoding": {"color": {"field": "fill", "type": "nominal", "scale": None},
                          "href": {"field": "href"}}},
            {"mark": {"type": "text", "aria": False, "fontSize": 11},
             "encoding": {"text": {"field": "text"},
                          "color": {"field": "ink", "type": "nominal", "scale": None}}},
        ],
    }


def compile_times(rows):
    """First calls, cold and warm, by configuration: (label, cold ms or None, warm ms or None)."""
    values = []
    for label, cold, warm in rows[:_MOST_LINES]:
        values += [{"label": label, "caches": caches, "seconds": ms / 1e3}
                   for caches, ms in (("cold", cold), ("warm", warm)) if ms]
    y = _lines(label for label, _, _ in rows[:_MOST_LINES])
    seconds = [value["seconds"] for value in values]
    low, high = min(seconds) / 1.1, max(seconds) * 1.1
    x = {"field": "seconds", "type": "quantitative", "title": "first call, seconds",
         "scale": {"type": "log", "nice": False, "domain": [low, high]},
         "axis": {"values": _ticks(low, high), "format": "~g", "labelOverlap": True}}
    shape = {"field": "caches", "type": "nominal",
             "scale": {"domain": ["cold", "warm"],
                       "range": ["var(--accent)", "var(--panel)"]}, "legend": None}
    return {
        "description": "First call of each configuration, with cold and with warm caches",
        "data": {"values": values}, "width": _WIDTH, "height": {"step": 22},
        "layer": [
            {"mark": {"type": "line", "color": "var(--line)", "strokeWidth": 2},
             "encoding": {"x": x, "y": y, "detail": {"field": "label"}}},
            {"mark": {"type": "point", "filled": True, "size": 64, "opacity": 1,
                      "stroke": "var(--accent)", "strokeWidth": 1.6},
             "encoding": {"x": x, "y": y, "fill": shape}},
        ],
    }


def _lines(labels):
    """A vertical axis with a name on every line and room for the longest."""
    longest = max(map(len, labels))
    return {"field": "label", "type": "nominal", "sort": None, "title": None,
            "axis": {"grid": False, "labelPadding": 10,
                     "minExtent": _CHARACTER * min(46, longest) + 10}}


def _cell(one, ratio):
    """Fill, ink, text and link of a cell of the heat map."""
    if one is None:
        return {"fill": "var(--bg)", "ink": "var(--soft)", "text": MISSING}
    href = f"#row-{one.number}"
    if not one.row.passed:
        return {"fill": "var(--failed)", "ink": "var(--del)", "href": href,
                "text": _STATUS_SIGNS.get(one.row.status, "✕ failed")}
    if ratio is None:
        return {"fill": "var(--bg)", "ink": "var(--soft)", "text": "no pairs", "href": href}
    place = sum(ratio > limit for limit in _CLASSES)
    strong = place in (0, len(_CLASSES))
    return {"fill": f"var(--heat-{place})", "ink": "var(--heat-ink)" if strong else "var(--ink)",
            "text": times(ratio), "href": href}


def _ticks(low, high):
    """Round ratios; finer where the axis is short."""
    fine = [0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.3]
    coarse = [m * 10.0 ** e for e in range(-9, 10) for m in (1, 2, 5)]
    chosen = coarse + [0.75, 1.5, 3] if log2(high / low) < 3 else coarse
    chosen = fine if log2(high / low) < 0.7 else chosen
    return sorted(tick for tick in chosen if low <= tick <= high)
