"""House test: what READMEs say of folders and files is so."""

import pathlib
import re
import unittest

import tree

TOP = pathlib.Path(".")


def readmes():
    return [p for p in tree.files("README.md") if p.name == "README.md"]


def folders():
    """Every folder that holds files of ours, and those above it."""
    found = set()
    for path in tree.files():
        found.update(path.parents)
    return sorted(found - {TOP})


def names(path):
    """What stands in backticks in a README."""
    prose = re.sub(r"```.*?```", "", tree.text(path), flags=re.S)
    return set(re.findall(r"`([^`\n]+)`", prose))


def listed(path):
    """The names in the first column of a README's tables of folders and files."""
    is_inside = False
    for line in tree.text(path).splitlines():
        if not line.startswith("|"):
            is_inside = False
        elif re.match(r"\| (folder|file) \|", line):
            is_inside = True
        elif is_inside:
            yield from re.findall(r"`([\w./*-]+)`", line.split("|")[1])


class ReadmeTest(unittest.TestCase):
    def report(self, rule, repair, found):
        if found:
            self.fail("\n".join([f"rule: {rule}", *found, f"repair: {repair}"]))

    def test_every_folder_is_explained(self):
        found = []
        self.assertGreater(len(folders()), 20)
        for folder in folders():
            if folder.parts[0].startswith("."):
                continue
            if (tree.ROOT / folder / "README.md").exists():
                continue
            above = next(p for p in folder.parents if (tree.ROOT / p / "README.md").exists())
            said = set()
            for name in names(above / "README.md"):
                said.update(p.as_posix() for p in [pathlib.Path(name), *pathlib.Path(name).parents])
            inside = folder.relative_to(above)
            if inside.as_posix() not in said and inside.name not in said:
                found.append(f"  {folder}: {above / 'README.md'} does not name it")
        self.report("a folder has a README or stands in the one above", "say what it is for", found)

    def test_top_folders_have_one(self):
        found = [
            f"  {folder}"
            for folder in folders()
            if len(folder.parts) == 1 and not folder.name.startswith(".")
            and not (tree.ROOT / folder / "README.md").exists()
        ]
        self.report("a folder at the top has a README", "write one", found)

    def test_what_a_table_names_exists(self):
        found, number = [], 0
        for path in readmes():
            for name in listed(path):
                number += 1
                # A name without a suffix stands for a header and its source.
                pattern = name if "." in name or "*" in name else f"{name}*"
                if not any((tree.ROOT / path.parent).glob(pattern)):
                    found.append(f"  {path}: '{name}'")
        self.assertGreater(number, 50)
        self.report("what a README's table names is there", "name what is", found)


if __name__ == "__main__":
    unittest.main()
