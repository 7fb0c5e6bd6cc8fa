"""Tests in Node: modules whose default export is an object of cases."""

def node_test(name, src, args = [], data = [], size = "small", tags = []):
    """Runs every case of a module; each counts as a test case of its own.

    Args:
      name: of the test.
      src: the .mjs file; `export default {"sentence": async (args) => {...}}`.
      args: what every case gets, as strings.
      data: what it reads, modules beside it included.
      size: of the test, for its time limit.
      tags: of the test.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/tools:node_test.sh"],
        args = ["$(location //tests/tools:node_cases.mjs)", "$(location %s)" % src] + args,
        data = data + [src, "//tests/tools:node_cases.mjs"],
        tags = tags,
    )
