"""call_torch_test through ctypes, as where the extension is not built."""

import os
import pathlib
import sys
import unittest

os.environ["LATHE_EXTENSION"] = "none"
sys.path.insert(0, str(pathlib.Path("tests/cli").resolve()))

from call_torch_test import TorchTest  # noqa: E402, F401

if __name__ == "__main__":
    unittest.main()
