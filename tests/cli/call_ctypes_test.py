"""call_test through ctypes, as where the extension is not built."""

import os
import unittest

os.environ["LATHE_EXTENSION"] = "none"

from call_test import NumPyTest  # noqa: E402, F401

if __name__ == "__main__":
    unittest.main()
