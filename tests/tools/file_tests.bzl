"""A folder of .lathe files as one test, each file a case of its own name."""

def file_tests(name, size = "small"):
    """Runs every .lathe file below this package (tests/tools/file_case.h says how).

    Args:
      name: of the test.
      size: of the test, for its time limit.
    """
    native.cc_test(
        name = name,
        size = size,
        args = [native.package_name()],
        data = native.glob(["**/*.lathe"]),
        deps = ["//tests/tools:file_test"],
    )
