"""House test 1: includes obey layers.txt, and the library neither prints, throws nor exits."""

import collections
import pathlib
import re
import unittest

import tree

Layer = collections.namedtuple("Layer", "package may libraries why")

OURS = ("ir", "passes", "backends", "frontend", "experiments", "tests", "web")
LIBRARIES = {
    "fmt": r"fmt/",
    "json": r"nlohmann/",
    "zlib": r"zlib\.h",
    "md": r"sha2\.h",
    "cli11": r"CLI/",
    "llvm": r"llvm(-c)?/",
    "python": r"(Python|structmember)\.h",
    "gtest": r"(gtest|gmock)/",
    "benchmark": r"benchmark/",
    "posix": r"(sys/|linux/|(unistd|fcntl|sched|dlfcn|pthread|immintrin|cpuid)\.h)",
}
# What an older libc++ for WebAssembly lacks, or what prints and throws.
BANNED_HEADERS = {"format", "ranges", "execution", "iostream", "stdexcept", "exception"}
BANNED_WORDS = r"\b(throw|dynamic_cast|typeid)\b|\b(abort|exit|printf|puts|assert)\s*\("
# The standard library throws when memory is out; that ends where these are.
CATCHING = r"\b(try|catch)\b"
MAY_CATCH = (
    "frontend/api/lathe.cpp",
    "backends/cpu/package/package_abi.cpp",
    "ir/threads/threads.cpp",
)
MAY_PRINT = ("frontend/cli/", "frontend/driver/", "experiments/", "tests/")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)


def read_layers():
    layers = {}
    for line in tree.text("tests/house/layers.txt").splitlines():
        if line.strip() and not line.startswith("#"):
            package, may, libraries, why = [part.strip() for part in line.split("|")]
            layers[package] = Layer(package, may.split(), libraries.split(), why)
    return layers


LAYERS = read_layers()


def layer_of(path):
    for folder in [path.as_posix(), *[p.as_posix() for p in path.parents]]:
        if folder in LAYERS:
            return LAYERS[folder]
    return None


def is_ours(header):
    return header.split("/")[0] in OURS


def problem(path, header):
    """Why `path` must not include `header`, or None."""
    layer = layer_of(path)
    if not is_ours(header):
        for library, pattern in LIBRARIES.items():
            if re.fullmatch(pattern + ".*", header) and library not in layer.libraries:
                return f"{layer.package} may not use {library} ({layer.why})"
        if header in BANNED_HEADERS and not path.as_posix().startswith(MAY_PRINT + MAY_CATCH):
            return f"<{header}> is kept out of the library, which also compiles to WebAssembly"
        return None
    target = layer_of(pathlib.Path(header))
    if target is None:
        return f"{header} belongs to no package of layers.txt"
    if target.package == layer.package or "everything" in layer.may:
        return None
    if target.package in layer.may or header in layer.may:
        return None
    return f"{layer.package} may not include {target.package} ({layer.why})"


def sibling_problem(path, header):
    """Files that must not know each other, though they share a folder."""
    folder, name = path.parent.as_posix(), pathlib.Path(header).name
    if pathlib.Path(header).parent.as_posix() != folder or pathlib.Path(header).stem == path.stem:
        return None
    if folder in ("ir/ops", "ir/composites"):
        return "an op file includes no other op file: it is complete by itself"
    if folder == "passes" and name != "pass.h":
        return "a pass includes no other pass; what they share is in passes/analysis"
    return None


class LayersTest(unittest.TestCase):
    def report(self, rule, repair, found):
        if found:
            self.fail("\n".join([f"rule: {rule}", *found, f"repair: {repair}"]))

    def sources(self):
        return tree.files(*tree.CPP)

    def test_every_folder_has_a_row(self):
        found = [f"  {p} is in no package" for p in self.sources() if layer_of(p) is None]
        self.report("every folder of C++ has a row in tests/house/layers.txt", "add the row", found)

    def test_includes_obey_the_table(self):
        found = []
        for path in self.sources():
            for match in INCLUDE.finditer(tree.text(path)):
                if layer_of(path) is None:
                    continue
                why = problem(path, match.group(2)) or sibling_problem(path, match.group(2))
                if why:
                    line = tree.text(path).count("\n", 0, match.start(1)) + 1
                    found.append(f"  {path}:{line}: includes {match.group(2)}: {why}")
        self.report(
            "a package includes only what tests/house/layers.txt allows",
            "move what is needed down a layer, or pass it in; change the table only with a reason",
            found,
        )

    def test_the_library_neither_prints_nor_throws_nor_exits(self):
        found = []
        for path in self.sources():
            if path.as_posix().startswith(MAY_PRINT) or path.parts[0] == "tests":
                continue
            banned = BANNED_WORDS
            if path.as_posix() not in MAY_CATCH:
                banned += "|" + CATCHING
            for number, line in enumerate(tree.code(path).splitlines(), 1):
                if re.search(banned, line):
                    found.append(f"  {path}:{number}: {line.strip()}")
        self.report(
            "the library returns Result; it never throws, prints, aborts or exits",
            "return a Diag, or use LATHE_CHECK for an invariant of ours",
            found,
        )

    def test_a_row_names_no_later_row(self):
        found, seen = [], set()
        for package, layer in LAYERS.items():
            if "everything" in layer.may and package != "tests":
                found.append(f"  {package} may include everything: say what")
            known = {"-", "everything"}
            later = [p for p in layer.may if p not in seen | known and not p.endswith(".h")]
            found += [f"  {package} names {p}" for p in later]
            seen.add(package)
        self.report("a row of layers.txt names packages of rows above it", "list them", found)

    def test_the_table_has_no_cycle(self):
        order, state = [], {}

        def visit(package, path):
            if state.get(package) == "open":
                self.fail(f"layers.txt goes in a circle: {' -> '.join([*path, package])}")
            if package in state or package not in LAYERS:
                return
            state[package] = "open"
            for below in LAYERS[package].may:
                visit(below, [*path, package])
            state[package] = "done"
            order.append(package)

        for package in LAYERS:
            visit(package, [])
        self.assertEqual(len(order), len(LAYERS))


if __name__ == "__main__":
    unittest.main()
