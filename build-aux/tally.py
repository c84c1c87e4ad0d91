#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the JUnit XML of all runners: tally.py DIRECTORY [FAILED_RUNNER...]

Prints every failure and every skip with its reason, and last "N passed, N failed, N skipped". A runner
that failed without a failing test case (a crash, no test found) counts as one failure. Exit status 1 when
anything failed or nothing ran.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ET


NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd]|&#(x0?[0-8b-c]|x[01][0-9a-f]|[0-8]|1[124-9]|2[0-9]|3[01]);")


def cases(path):
    """The test cases; what tests print may be no XML, and meson copies it as it is."""
    text = path.read_text(errors="replace")
    return ET.fromstring(NO_XML.sub("?", text)).iter("testcase")


def main():
    directory, failed_runners = pathlib.Path(sys.argv[1]), sys.argv[2:]
    passed = failed = skipped = 0
    for path in sorted(directory.glob("*.xml")):
        runner_failed = 0
        for case in cases(path):
            name = f"{path.stem}: {case.get('classname', '')} {case.get('name')}"
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                runner_failed += 1
                print(f"FAILED  {name}")
            elif skip is not None:
                skipped += 1
                reason = skip.get("message") or skip.text or case.findtext("system-out") or "no reason given"
                print(f"skipped {name}: {reason.strip()}")
            else:
                passed += 1
        if path.stem in failed_runners and runner_failed == 0:
            runner_failed = 1
            print(f"FAILED  {path.stem}: the runner itself")
        failed += runner_failed
    failed += sum(1 for runner in failed_runners if not (directory / f"{runner}.xml").exists())
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


sys.exit(main())
