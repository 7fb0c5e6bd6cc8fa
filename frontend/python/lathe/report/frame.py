"""What every page of a report has: style and script within it, and a policy that runs no other.

Jinja2 escapes whatever comes from a file; only our own SVG, style and script go in as they are. The
policy allows that one script by its hash, so even what slipped through could not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources

from lathe.report import plots, quantities
from lathe.report.journal_file import number

INSTALL = "pip install Jinja2==3.1.6"


def environment():
    """Jinja2's, with what all templates use; raises plots.MissingLibrary."""
    try:
        import jinja2
    except ImportError:
        raise plots.MissingLibrary(f"the page needs Jinja2: {INSTALL}") from None
    made = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True, loader=jinja2.FunctionLoader(own))
    made.filters["tight"] = tight
    made.globals.update(plural=quantities.plural, percent=quantities.percent, value=value,
                        number=sort_key, count="{:,}".format, missing=quantities.MISSING)
    return made


def own(name):
    """The text of a file of this package."""
    return resources.files("lathe.report").joinpath(name).read_text(encoding="utf-8")


def style_and_script(styles, scripts):
    """Of the files with these names, and the hash by which the page's policy knows the script."""
    script = "\n".join(map(own, scripts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"css": markup()("\n".join(map(own, styles))), "script": markup()(script),
            "script_hash": digest}


def environment_tables(environments):
    """(name, words) lines of each record that describes a machine."""
    tables = []
    for entry in environments:
        packages = entry.get("packages")
        words = {"id": entry.get("id"), "processor": entry.get("cpu"), "cores": entry.get("cores"),
                 "memory": quantities.byte_count(number(entry.get("memory_bytes"))),
                 "GPU": entry.get("gpu") or "none", "system": entry.get("os"),
                 "Python": entry.get("python"), "Lathe": entry.get("lathe"),
                 "node": entry.get("node"),
                 "packages": ", ".join(f"{k} {v}" for k, v in packages.items())
                 if isinstance(packages, dict) else None}
        tables.append([(name, quantities.MISSING if text is None else str(text))
                       for name, text in words.items()])
    return tables


def in_script(value):
    """JSON that can stand in a script element: nothing in it can end that."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return markup()(text)


def markup():
    import markupsafe  # Jinja2 brings it

    return markupsafe.Markup


def sort_key(value):
    """What a table sorts by; nothing sorts last."""
    return "" if value is None else f"{value:.6g}"


def value(found, write):
    """A cell that sorts by its number."""
    words = quantities.MISSING if found is None else write(found)
    return markup()('<td data-value="{}">{}</td>').format(sort_key(found), words)


def tight(rows):
    """Without white space between cells: a thousand rows would make ten thousand nodes of it."""
    return markup()(re.sub(r">\s+<", "><", rows))
