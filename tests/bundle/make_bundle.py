"""Writes three_breaks.zip beside it: the bundle of the model in three_breaks.py.

    python tests/bundle/make_bundle.py

Needs torch 2.13.0; the file in the tree was made by it.
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "frontend" / "python")]

import torch  # noqa: E402

import lathe  # noqa: E402
import three_breaks  # noqa: E402


def make(path):
    """Writes the bundle to `path`."""
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    with torch.no_grad():
        return lathe.capture(three_breaks.Gated().eval(), [(x,)] * len(three_breaks.CALLS),
                             three_breaks.CALLS, path=path, project=FOLDER)


if __name__ == "__main__":
    make(FOLDER / "three_breaks.zip")
