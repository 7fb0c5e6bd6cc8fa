"""The package's C extension, which makes calls cheap: without it they go through ctypes.

It needs a C++ compiler and Python's headers (python3-dev); where they are missing pip says so and
installs the package without it. The rest of what pip wants to know is in pyproject.toml.
"""

import pathlib
import sys
import sysconfig

from setuptools import Extension, setup

TREE = pathlib.Path(__file__).resolve().parents[2]
# The stable ABI has what it needs since 3.11, and is not there where Python has no global lock.
STABLE = sys.version_info >= (3, 11) and not sysconfig.get_config_var("Py_GIL_DISABLED")

extension = Extension(
    "lathe._call",
    sources=["call/module.cpp", "call/plan.cpp", "call/tensors.cpp"],
    include_dirs=[str(TREE)],
    extra_compile_args=["-std=c++20", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
    py_limited_api=STABLE,
    optional=True,
)
setup(
    ext_modules=[extension],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
