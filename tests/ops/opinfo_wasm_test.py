"""The samples of opinfo_test on WebAssembly, in Node.

With the instructions that every engine has: relaxed ones may round once or twice, as the engine
likes, and of two samples whose logits are in the thousands that decides more than the last digits.
"""

import os
import pathlib
import shutil
import sys
import unittest

if shutil.which("node") is None and "LATHE_EXPECTS_NODE" not in os.environ:
    raise unittest.SkipTest("needs Node 18")

os.environ["OPINFO_TARGET"] = "wasm simd128"
sys.path.insert(0, str(pathlib.Path("tests/ops").resolve()))

from opinfo_test import OpInfo  # noqa: E402, F401

if __name__ == "__main__":
    sys.exit(unittest.main())
