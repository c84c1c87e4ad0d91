#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which test covers which acceptance scenario: reads the tags at the tests, writes tests/scenario/COVERAGE.md.

usage: coverage.py               write the page
       coverage.py check WHAT... complain; WHAT: tags (well-formed, of known scenarios, at a test),
                                 page (is what this script makes), gaps (every scenario has a test or a reason, in the
                                 parts of the list that are complete)

A tag (`spec:01#16`, `spec:02-14.1#5`, `field:FR-B01`) stands in a comment or docstring inside a test function or before it. Before a
row of a C table it belongs to the test that the row names by its path, or to the next test function.
tests/scenario/acceptance.txt has the scenarios, and its topic comment the form of that list.
"""
import ast
import os
import re
import sys

LIST = "tests/scenario/acceptance.txt"
PAGE = "tests/scenario/COVERAGE.md"
FOLDERS = ("src", "tests", "build-aux")
# the parts of the list, and whether each scenario of the part must have a test or a reason
PARTS = (("Reconcile core (spec 01 §30)", "01#", True), ("Status (spec 02 §14)", "02-", True), ("Network (spec 04 §23)", "04-", True),
         ("Storage and isolation (spec 05 §16)", "05-", True), ("Configuration (spec 08 §13.1, §13.2)", "08-", True),
         ("Field reports", "FR-", False))
# a tag has a digit or capital behind the colon: this keeps prose like "spec: see" out
TAG = re.compile(r"\b(spec|field):(?=[0-9A-Z])([\w.#-]*[\w#])")
C_FUNCTION = re.compile(r"^(\w+)\(")
C_PATH = re.compile(r'"(/[\w./-]+)"')


class Scenario:
    def __init__(self, number, title, heading):
        self.number, self.title, self.heading = number, title, heading
        self.reason = None
        self.tests = set()

    @property
    def tag(self):
        return ("field:" if self.number.startswith("FR-") else "spec:") + self.number


class Heading:
    def __init__(self, title):
        self.title, self.reason, self.scenarios = title, None, []


def parse_list(text):
    """@text as headings with their scenarios, in order."""
    headings, last = [], None
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            headings.append(last := Heading(line[1:-1]))
        elif line.lstrip().startswith("= "):
            last.reason = line.strip()[2:]
        else:
            number, title = line.split(" ", 1)
            headings[-1].scenarios.append(last := Scenario(number, title, headings[-1]))
    return headings


def python_owner(text):
    """A function from line number to the test it belongs to; None: to no test."""
    spans = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
            spans.append((first, node.end_lineno, node.name))
    spans.sort()

    def owner(line):
        inside = [name for first, last, name in spans if first <= line <= last]
        name = inside[0] if inside else next((name for first, _, name in spans if first > line), "")
        return name if name.startswith("test") else None
    return owner


def c_owner(text):
    lines = text.splitlines()
    spans, opened = [], None  # of the house style: the name at column 0, the body between braces at column 0
    for index, line in enumerate(lines, 1):
        match = C_FUNCTION.match(line)
        if match:
            opened = (index, match.group(1))
        elif line == "}" and opened:
            spans.append((opened[0], index, opened[1]))
            opened = None

    def owner(line):
        inside = [name for first, last, name in spans if first <= line <= last]
        if not inside:
            path = C_PATH.search(lines[line - 1])
            following = next((text for text in lines[line:] if not text.lstrip().startswith(("/*", "*", "//"))), "")
            if path is None and following.startswith((" ", "\t")):
                path = C_PATH.search(following)
            if path:
                return path.group(1)
        name = inside[0] if inside else next((name for first, _, name in spans if first > line and name.startswith("test")), "")
        return name if name.startswith("test") else None
    return owner


def is_test_file(path):
    name = os.path.basename(path)
    return name.startswith("test-") and name.endswith((".c", ".h")) or name.startswith("test_") and name.endswith(".py")


def read_tags(root):
    """Every tag in the tests: (path, line, tag, test or None)."""
    for folder in FOLDERS:
        for top, subfolders, names in os.walk(os.path.join(root, folder)):
            subfolders[:] = sorted(set(subfolders) - {"__pycache__", "data", "corpus"})
            for name in sorted(names):
                path = os.path.relpath(os.path.join(top, name), root)
                if not is_test_file(path) or path == "build-aux/test_coverage.py":
                    continue
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    text = file.read()
                if not TAG.search(text):
                    continue
                owner = python_owner(text) if name.endswith(".py") else c_owner(text)
                for line, content in enumerate(text.splitlines(), 1):
                    for match in TAG.finditer(content):
                        yield path, line, match.group(0), owner(line)


def collect(root):
    """(headings with the tests of their scenarios, complaints about tags)."""
    with open(os.path.join(root, LIST), encoding="utf-8") as file:
        headings = parse_list(file.read())
    known, complaints = {}, []
    for scenario in (scenario for heading in headings for scenario in heading.scenarios):
        if scenario.tag in known:
            complaints.append(f"{LIST}: {scenario.number} is listed twice")
        known[scenario.tag] = scenario
    for path, line, tag, test in read_tags(root):
        if tag not in known:
            complaints.append(f"{path}:{line}: {tag} is not in {LIST}")
        elif test is None:
            complaints.append(f"{path}:{line}: {tag} stands at no test")
        else:
            known[tag].tests.add((path, test))
    complaints += [f"{LIST}: {scenario.number} has a reason to have no test, and tests" for scenario in known.values()
                   if scenario.reason and scenario.tests]
    return headings, complaints


def is_gap(scenario):
    return not (scenario.tests or scenario.reason or scenario.heading.reason)


def is_enforced(scenario):
    return any(scenario.number.startswith(prefix) for _, prefix, is_complete in PARTS if is_complete)


def render(headings):
    everything = [scenario for heading in headings for scenario in heading.scenarios]
    lines = ["# Acceptance scenarios and their tests", "",
             "Made by `build-aux/coverage.py` from the tags at the tests and from `acceptance.txt`; do not edit.", ""]
    for what, prefix, _ in PARTS:
        group = [scenario for scenario in everything if scenario.number.startswith(prefix)]
        tested = sum(bool(scenario.tests) for scenario in group)
        gaps = sum(is_gap(scenario) for scenario in group)
        lines.append(f"- {what}: {len(group)} scenarios, {tested} tested, {len(group) - tested - gaps} with a reason, {gaps} open")
    for heading in headings:
        lines += ["", f"## {heading.title}", "", "| scenario | what | tests |", "|---|---|---|"]
        for scenario in heading.scenarios:
            tests = ", ".join(f"`{path}` {test}" for path, test in sorted(scenario.tests))
            reason = scenario.reason or heading.reason
            lines.append(f"| {scenario.number} | {scenario.title} | {tests or (reason and f'none: {reason}') or '**open**'} |")
    return "\n".join(lines) + "\n"


def check(root, what):
    headings, complaints = collect(root)
    complaints = complaints if "tags" in what else []
    if "page" in what:
        with open(os.path.join(root, PAGE), encoding="utf-8") as file:
            if file.read() != render(headings):
                complaints.append(f"{PAGE} is old: run build-aux/coverage.py")
    if "gaps" in what:
        complaints += [f"{LIST}: {scenario.number} has neither a test nor a reason" for heading in headings
                       for scenario in heading.scenarios if is_gap(scenario) and is_enforced(scenario)]
    return complaints


def main(arguments):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if arguments[:1] == ["check"] and arguments[1:] and set(arguments[1:]) <= {"tags", "page", "gaps"}:
        complaints = check(root, set(arguments[1:]))
        print("\n".join(complaints), end="\n" if complaints else "")
        return 1 if complaints else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    with open(os.path.join(root, PAGE), "w", encoding="utf-8") as file:
        file.write(render(collect(root)[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
