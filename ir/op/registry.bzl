"""Registration by existence: one C++ table from the files of a folder."""

load("//tools/bazel:cc.bzl", "cc_library")

def registry(
        name,
        type,
        header,
        function,
        srcs,
        deps,
        is_list = False,
        prefix = "define_",
        copts = [],
        visibility = ["//visibility:public"]):
    """A library whose `function` returns every `<type> <prefix><stem>()` of its sources, sorted.

    Args:
      name: of the library.
      type: what one file defines.
      header: declares `type` and `function`.
      function: the C++ name of the table.
      srcs: one .cpp file for each entry.
      deps: of the library.
      prefix: of the functions; tables that one program links need different ones.
      copts: of the compiler, for its sources.
      is_list: a file defines a std::vector<type> (a family of rows) instead of one.
      visibility: of the library.
    """
    stems = sorted([s[:-len(".cpp")] for s in srcs])
    result = "std::vector<%s>" % type if is_list else type
    headers = ["\"%s\"" % header, "<iterator>", "<utility>", "<vector>"]
    lines = ["#include %s" % h for h in headers] + ["namespace lathe {"]
    lines += ["%s %s%s();" % (result, prefix, s) for s in stems]
    lines += ["std::vector<%s> %s() {" % (type, function), "  std::vector<%s> rows;" % type]
    for s in stems:
        if is_list:
            lines.append("  for (auto& row : %s()) rows.push_back(std::move(row));" % (prefix + s))
        else:
            lines.append("  rows.push_back(%s());" % (prefix + s))
    lines += ["  return rows;", "}", "}  // namespace lathe"]
    native.genrule(
        name = name + "_table",
        outs = [name + "_table.cpp"],
        cmd = "cat > $@ <<'EOF'\n" + "\n".join(lines) + "\nEOF\n",
    )
    cc_library(
        name = name,
        srcs = srcs + [name + "_table.cpp"],
        copts = copts,
        visibility = visibility,
        deps = deps,
    )
