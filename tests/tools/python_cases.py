"""Runs a file of unittest cases and reports each to Bazel as JUnit XML: python_cases.py FILE."""

import importlib.util
import os
import pathlib
import sys
import time
import unittest
import xml.etree.ElementTree as xml


class Recorder(unittest.TextTestResult):
    """Collects one XML element for each case."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.suite = xml.Element("testsuite", name=pathlib.Path(sys.argv[1]).stem)

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        case = self.case(test, f"{time.monotonic() - self.started:.3f}")
        # Sub-tests fail under names of their own; they belong to their case here.
        words = {
            id(getattr(t, "test_case", t)): text for t, text in self.failures + self.errors
        }
        skipped = {id(t): reason for t, reason in self.skipped}
        if id(test) in words:
            xml.SubElement(case, "failure", message=words[id(test)])
        elif id(test) in skipped:
            xml.SubElement(case, "skipped", message=skipped[id(test)])

    def case(self, test, seconds):
        group, _, name = test.id().rpartition(".")
        return xml.SubElement(self.suite, "testcase", classname=group, name=name, time=seconds)

    def addError(self, test, err):
        super().addError(test, err)
        if not isinstance(test, unittest.TestCase):  # a failure to set a class or module up
            case = self.case(test, "0")
            xml.SubElement(case, "failure", message=self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if not isinstance(test, unittest.TestCase) or not hasattr(self, "started"):
            xml.SubElement(self.case(test, "0"), "skipped", message=reason)


def skipped_case(name, reason):
    def run(self):
        raise unittest.SkipTest(reason)

    return type(name, (unittest.TestCase,), {"runTest": run})()


def main():
    path = pathlib.Path(sys.argv[1])
    sys.path[:0] = [str(path.parent), os.getcwd()]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    except unittest.SkipTest as skip:  # the whole file needs what this machine lacks
        suite = unittest.TestSuite([skipped_case(path.stem, str(skip))])
    result = unittest.TextTestRunner(sys.stdout, verbosity=2, resultclass=Recorder).run(suite)
    if os.environ.get("XML_OUTPUT_FILE"):
        xml.ElementTree(result.suite).write(os.environ["XML_OUTPUT_FILE"], encoding="utf-8")
    if result.testsRun == 0 and not result.skipped:
        sys.exit("the file holds no test")
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
