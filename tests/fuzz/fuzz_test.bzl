"""Fuzz targets: one property over any bytes, seeded by valid inputs."""

def fuzz_test(name, deps, seeds, seed_paths):
    """The target of <name>.cpp, over seeded mutations or under libFuzzer.

    `./lathe test --all` runs it for its share of a minute under sanitizers; for hours:
    `./lathe test --fuzz-seconds 3600 //tests/fuzz:NAME`, or, guided by coverage,
    `bazel run --config=libfuzzer //tests/fuzz:NAME -- -timeout=10 FOLDER_OF_SEEDS`.

    Args:
      name: of the test and of its file.
      deps: of the file.
      seeds: labels of valid inputs.
      seed_paths: the files or folders they are, from the root.
    """
    native.cc_test(
        name = name,
        size = "medium",
        srcs = [name + ".cpp"],
        args = seed_paths,
        data = seeds,
        linkopts = select({
            "//tests/fuzz:libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = ["fuzz"],
        deps = deps + [
            "//tests/fuzz:fuzz_target",
            "//tests/fuzz:harness",
        ] + select({
            "//tests/fuzz:libfuzzer": [],
            "//conditions:default": ["//tests/fuzz:mutate_main"],
        }),
    )
