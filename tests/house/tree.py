"""The source tree as the house tests read it: which files there are, and code without comments."""

import os
import pathlib
import re

# A test runs among links into the tree; WORKSPACE is one of them.
ROOT = pathlib.Path("WORKSPACE").resolve().parent

CPP = (".cpp", ".h")
_SKIPPED = re.compile(
    r"^(bazel-.*|\.git|\.lathe|results|node_modules|dist|\.build|__pycache__|.*\.egg-info)$"
)
_MADE = {"web/notebook/data"}  # by building the page


def files(*suffixes, under="."):
    """Paths relative to the root, sorted; every suffix when none is given."""
    found = []
    for folder, folders, names in os.walk(ROOT / under):
        here = pathlib.Path(folder).relative_to(ROOT)
        folders[:] = [
            f for f in folders if not _SKIPPED.match(f) and (here / f).as_posix() not in _MADE
        ]
        for name in names:
            if not suffixes or name.endswith(suffixes):
                found.append(pathlib.Path(folder, name).relative_to(ROOT))
    return sorted(found)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


_TOKEN = re.compile(
    r'R"(?P<tag>[^()\s\\]{0,16})\((?s:.*?)\)(?P=tag)"'  # raw strings first: they may hold anything
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # not the digit separator of 1'000
    r"|//[^\n]*"
    r"|/\*(?s:.*?)\*/"
)


def code(path):
    """C++ with comments and the insides of literals blanked; every line keeps its number."""

    def blank(match):
        word = match.group()
        lines = "\n" * word.count("\n")
        return lines if word.startswith(("//", "/*")) else '""' + lines

    return _TOKEN.sub(blank, text(path))
