"""House test: a type has one definition, as the linker assumes and no tool checks.

Two types of one qualified name in two files break the one-definition rule as soon as one program
links both: it keeps one copy of their inline functions, and the other file runs with it. Types in
an anonymous namespace are their file's own.
"""

import collections
import re
import unittest

import tree

DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*", re.M)
NAMESPACE = re.compile(r"\b(?:inline )?namespace\b\s*(?P<name>[\w:]*)\s*$")
TYPE = re.compile(
    r"^(?:template\s*<.*>\s*|typedef\s+)*"
    r"(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+"
    r"(?:(?:\[\[.*?\]\]|alignas\s*\([^)]*\))\s*)*"
    r"(?P<name>[\w:]+)(?:\s+final)?\s*(?::[^:].*)?$",
    re.S,
)


def types(code):
    """Qualified names of the types that are defined in named namespaces or outside all."""
    scopes, found, start = [], [], 0  # a name for each open brace; None: what is inside is its own
    code = DIRECTIVE.sub("", code)
    for match in re.finditer(r"[{};]", code):
        header, start = code[start : match.start()].strip(), match.end()
        if match.group() == "}" and scopes:
            scopes.pop()
        if match.group() != "{":
            continue
        name = None
        if namespace := NAMESPACE.search(header):
            name = namespace["name"] or None
        elif header.endswith('extern ""'):
            name = ""
        elif None not in scopes and (defined := TYPE.match(header)):
            found.append("::".join([*filter(None, scopes), defined["name"]]))
        scopes.append(name)
    return found


def twins(sources):
    """The names that several files define, with the files, of (path, code)."""
    files = collections.defaultdict(list)
    for path, code in sources:
        for name in dict.fromkeys(types(code)):
            files[name].append(path)
    return {name: paths for name, paths in files.items() if len(paths) > 1}


class TypesTest(unittest.TestCase):
    def test_a_type_is_defined_in_one_file(self):
        sources = [(path, tree.code(path)) for path in tree.files(*tree.CPP)]
        self.assertGreater(sum(len(types(code)) for _, code in sources), 300)
        found = [f"  {name}: {', '.join(map(str, at))}" for name, at in twins(sources).items()]
        if found:
            rule = "rule: a type outside anonymous namespaces is defined in one file"
            repair = "repair: put it into an anonymous namespace, or name each after what it is"
            self.fail("\n".join([rule, *sorted(found), repair]))

    def test_twins_are_found(self):
        one = "namespace lathe {\nstruct Answer { int value; };\n}"
        for other in (
            "namespace lathe {\nclass Answer final : public Base { };\n}",
            "namespace lathe {\nnamespace {\nint x = 1;\n}\nenum class Answer : char { a };\n}",
            "#include <map>\nnamespace lathe {\ntemplate <typename T>\nstruct Answer { };\n}",
        ):
            found = twins([("a.cpp", one), ("b.cpp", other)])
            self.assertEqual(found, {"lathe::Answer": ["a.cpp", "b.cpp"]}, other)

    def test_others_may_share_a_name(self):
        one = "namespace lathe {\nstruct Answer { int value; };\n}"
        for other in (
            "namespace lathe {\nnamespace {\nstruct Answer { };\n}\n}",
            "namespace lathe::loop {\nstruct Answer { };\n}",
            "namespace lathe {\nstruct Answer;\nenum class Answer : int;\n}",
            "namespace lathe {\nstruct Page {\n  struct Answer { };\n};\n}",
            "namespace lathe {\nstruct Answer answer() { return {}; }\n}",
            "namespace lathe {\ntemplate <>\nstruct Answer<int> { };\n}",
        ):
            self.assertEqual(twins([("a.cpp", one), ("b.cpp", other)]), {}, other)


if __name__ == "__main__":
    unittest.main()
