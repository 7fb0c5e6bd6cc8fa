"""Libraries compiled a few files at a time: most of a file's cost is its headers'."""

_FILES_AT_ONCE = 8

def _is_source(name):
    return name.endswith(".cpp")

def _units(name, srcs):
    """`srcs` with a few generated sources instead of its own, where that makes them fewer."""
    sources = [s for s in srcs if _is_source(s)]
    if len(sources) < 2:
        return srcs
    count = (len(sources) + _FILES_AT_ONCE - 1) // _FILES_AT_ONCE
    outs = []
    for i in range(count):
        outs.append("%s_unit%d.cpp" % (name, i))
        native.genrule(
            name = "%s_unit%d" % (name, i),
            srcs = sources[len(sources) * i // count:len(sources) * (i + 1) // count],
            outs = [outs[-1]],
            cmd = "for f in $(SRCS); do echo \"#line 1 \\\"$$f\\\"\"; cat $$f; done > $@",
            visibility = ["//visibility:private"],
        )
    return [s for s in srcs if not _is_source(s)] + select({
        "//tools/bazel:separate": sources,
        "//conditions:default": outs,
    })

def cc_library(name, srcs = [], chosen_srcs = [], **kwargs):
    """native.cc_library, whose sources become few translation units.

    A name at file scope, in an anonymous namespace too, is therefore unique within a library.
    Diagnostics and debuggers see the files themselves. `--config=separate` compiles each alone,
    which finds an include that a file owes to its neighbour.

    Args:
      name: of the library.
      srcs: as native.cc_library has them, without a select().
      chosen_srcs: a select() of more sources, each compiled alone.
      **kwargs: native.cc_library's.
    """
    native.cc_library(name = name, srcs = _units(name, srcs) + chosen_srcs, **kwargs)

def cc_binary(name, srcs = [], **kwargs):
    """native.cc_binary in the same way."""
    native.cc_binary(name = name, srcs = _units(name, srcs), **kwargs)

def cc_test(name, srcs = [], **kwargs):
    """native.cc_test in the same way."""
    native.cc_test(name = name, srcs = _units(name, srcs), **kwargs)
