"""What source files are called in files that leave this machine."""

from __future__ import annotations

import os
import re
import sysconfig

_FRAME = re.compile(r'File "([^"\n]*)", line ')
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")


def rewrite_frames(trace, project):
    """The text of a stack trace, its files named as `shared_name` names them."""
    return _FRAME.sub(lambda match: f'File "{shared_name(match[1], project)}", line ', trace)


def shared_name(file, project):
    """Relative to `project`, with the place in its package (torch/nn/...), or the bare name."""
    if packaged := _PACKAGES.match(file):
        return file[packaged.end():]
    library = sysconfig.get_paths()["stdlib"]
    for folder, prefix in ((project, ""), (library, "python/")):
        # With links followed and without, since either side may be reached through one.
        for place in (os.path.abspath, os.path.realpath):
            relative = os.path.relpath(place(file), place(folder))
            if relative.split(os.sep)[0] != os.pardir:
                return prefix + relative
    return os.path.basename(file)
