"""Python tests: unittest files, run by the system's Python or the launcher's environment."""

def python_test(name, src, data = [], size = "small", tags = []):
    """Runs every unittest case of a file; each counts as a test case of its own.

    With LATHE_PYTHON in the test's environment, that interpreter runs it (the one with PyTorch).

    Args:
      name: of the test.
      src: the Python file.
      data: what it reads, modules beside it included.
      size: of the test, for its time limit.
      tags: "torch" when it needs PyTorch; "external" when it reads the tree itself.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/tools:python_test.sh"],
        args = ["$(location //tests/tools:python_cases.py)", "$(location %s)" % src],
        data = data + [src, "//tests/tools:python_cases.py"],
        tags = tags,
    )
