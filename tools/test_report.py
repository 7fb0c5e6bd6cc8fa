"""The last lines of ./lathe test: every test case counted, failures shown, skips explained.

Reads what Bazel left of each suite in a folder: NAME.json (its event stream), NAME.code (Bazel's
exit status) and NAME.log. Exit code: 0 all passed, 1 a test failed, 2 there was no
test, 3 something did not build.
"""

import argparse
import collections
import json
import pathlib
import re
import sys
import urllib.parse
import xml.etree.ElementTree as xml

SUITES = ["everyday", "heavy", "pytorch", "sanitizers", "races", "fuzz"]
LEFT_OUT = (
    "left to ./lathe test --all: heavy models, comparison with PyTorch, sanitizers, fuzzing"
)
NO_REASON = "no reason given"
MAX_FAILURES_SHOWN = 20
MAX_LINES_PER_FAILURE = 40

Case = collections.namedtuple("Case", "suite target name outcome text")


def local_path(uri):
    return pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))


def log_tail(outputs):
    path = outputs.get("test.log")
    if not path or not path.exists():
        return "no output was kept"
    text = path.read_text(errors="replace")
    lines = re.split(r"^-{70,}\n", text, maxsplit=1, flags=re.M)[-1].splitlines()  # Bazel's header
    return "\n".join(lines[-MAX_LINES_PER_FAILURE:])


def read_cases(suite, target, status, outputs):
    """The cases of a test target: from its XML where it wrote one, else the target as one case."""
    try:
        root = xml.parse(outputs["test.xml"]).getroot()
    except (KeyError, OSError, xml.ParseError):
        root = None
    cases = []
    for element in root.iter("testcase") if root is not None else []:
        name = ".".join(filter(None, [element.get("classname"), element.get("name")]))
        if name == target.strip("/").replace(":", "/"):  # Bazel's own XML: no cases were reported
            continue
        failures = element.findall("failure") + element.findall("error")
        skipped = element.find("skipped")
        if failures:
            text = "\n".join(f.get("message") or f.text or "" for f in failures)
            cases.append(Case(suite, target, name, "failed", text))
        elif skipped is not None or element.get("result") in ("skipped", "suppressed"):
            reason = None if skipped is None else skipped.get("message") or skipped.text
            cases.append(Case(suite, target, name, "skipped", (reason or NO_REASON).strip()))
        else:
            cases.append(Case(suite, target, name, "passed", ""))
    if status != "PASSED" and not any(c.outcome == "failed" for c in cases):
        # A crash or a timeout: what ran before it is in the log, not in the XML.
        words = {"TIMEOUT": "ran out of time", "FAILED": "ended with an error"}
        text = f"{words.get(status, status.lower())}\n{log_tail(outputs)}"
        cases.append(Case(suite, target, "", "failed", text))
    return cases or [Case(suite, target, "", "passed", "")]


def read_suite(folder, suite):
    """Cases by target, and seconds by target."""
    cases, seconds = {}, collections.Counter()
    events = (folder / f"{suite}.json").read_text(errors="replace").splitlines()
    for event in map(json.loads, filter(None, events)):
        if "testResult" in event:
            target, result = event["id"]["testResult"]["label"], event["testResult"]
            outputs = {o["name"]: local_path(o["uri"]) for o in result.get("testActionOutput", [])}
            cases[target] = read_cases(suite, target, result.get("status", "FAILED"), outputs)
            if not result.get("cachedLocally") and not result.get("executionInfo", {}).get(
                "cachedRemotely"
            ):
                seconds[target] += int(result.get("testAttemptDurationMillis", 0)) / 1000
        elif not event.get("completed", {"success": True}).get("success"):
            target = event["id"]["targetCompleted"]["label"]
            if target not in cases:
                cases[target] = [Case(suite, target, "", "failed", "does not build")]
    return cases, seconds


def build_errors(folder, suite):
    """What of Bazel's output tells why something did not build."""
    noise = r"(INFO|FAIL|Loading|Analyzing|Starting|DEBUG|Use --|WARNING|//|Executed|There were)|$"
    command = r": \S*clang\S* failed: error executing command .*"
    lines = (folder / f"{suite}.log").read_text(errors="replace").splitlines()
    return [re.sub(command, "", line) for line in lines if not re.match(noise, line)]


def count(cases):
    found = collections.Counter(c.outcome for c in cases)
    words = [f"{found[w]} {w}" for w in ("passed", "failed", "skipped") if found[w]]
    return ", ".join(words) or "no tests"


def print_failures(cases):
    for case in cases[:MAX_FAILURES_SHOWN]:
        print(f"\nFAILED {case.target} {case.name}".rstrip())
        lines = case.text.splitlines()
        print("\n".join("  " + line for line in lines[:MAX_LINES_PER_FAILURE]))
        if len(lines) > MAX_LINES_PER_FAILURE:
            print(f"  ... {len(lines) - MAX_LINES_PER_FAILURE} more lines")
    if len(cases) > MAX_FAILURES_SHOWN:
        print(f"\n... and {len(cases) - MAX_FAILURES_SHOWN} more failures:")
        print("\n".join(f"  {c.target} {c.name}" for c in cases[MAX_FAILURES_SHOWN:]))


def print_skips(cases):
    reasons = collections.defaultdict(list)
    for case in cases:
        reasons[case.text.splitlines()[-1]].append(case)
    for reason, those in reasons.items():
        print(f"skipped {len(those)} in {those[0].target}: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    everything, is_built = [], True
    for suite in SUITES:
        if not (arguments.folder / f"{suite}.code").exists():
            continue
        code = (arguments.folder / f"{suite}.code").read_text().strip()
        cases, seconds = read_suite(arguments.folder, suite)
        if code not in ("0", "3", "4"):  # 3: tests failed, 4: there are none of this kind
            is_built = False
            print("\n".join(build_errors(arguments.folder, suite)[:60]))
        if cases:
            print(suite)
        for target, those in sorted(cases.items()):
            spent = f"{seconds[target]:6.1f} s" if seconds.get(target) else ""
            print(f"  {target.lstrip('/'):<46} {count(those):<32} {spent}".rstrip())
            everything += those
    failed = [c for c in everything if c.outcome == "failed"]
    skipped = [c for c in everything if c.outcome == "skipped"]
    print_failures(failed)
    print()
    print_skips(skipped)
    if not arguments.all:
        print(LEFT_OUT)
    passed = len(everything) - len(failed) - len(skipped)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    if not everything:
        return 2  # the filter matches no test
    return 3 if not is_built else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
