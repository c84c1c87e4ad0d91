#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of coverage.py: whose test a tag is, and what the page and the complaints say."""
import os
import tempfile
import unittest

import coverage

LIST = "[One]\n01#1 first\n01#2 second\n  = a reason\n[Two]\n= built later\n02-14.1#1 third\n[Three]\n01#3 fourth\nFR-A01 fifth\n"
C = """/* spec:01#1 */
static void
test_one(void)
{
}

static const struct Row rows[] = {
    /* spec:02-14.1#1 */
    {"/room/row", 1},
    {NULL, 2}, /* spec:01#3 */
};

static void
test_rows(void)
{
    run(); /* field:FR-A01 */
}

static void
helper(void)
{
    %s
}
"""
PYTHON = '''
@mark("x")  # spec:01#1
def test_two(stage):
    """Does it. spec:01#3"""

def helper():
    """%s"""
'''


class Coverage(unittest.TestCase):
    def tree(self, c_tag="", python_tag="", listed=LIST):
        root = tempfile.mkdtemp()
        for path, text in ((coverage.LIST, listed), ("src/a/test-x.c", C % c_tag), ("tests/scenario/test_y.py", PYTHON % python_tag)):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return root

    def test_owners(self):
        headings, complaints = coverage.collect(self.tree())
        tests = {scenario.number: scenario.tests for heading in headings for scenario in heading.scenarios}
        self.assertEqual(complaints, [])
        self.assertEqual(tests, {
            "01#1": {("src/a/test-x.c", "test_one"), ("tests/scenario/test_y.py", "test_two")},
            "01#2": set(),
            "02-14.1#1": {("src/a/test-x.c", "/room/row")},
            "01#3": {("src/a/test-x.c", "test_rows"), ("tests/scenario/test_y.py", "test_two")},
            "FR-A01": {("src/a/test-x.c", "test_rows")}})

    def test_page(self):
        page = coverage.render(coverage.collect(self.tree())[0])
        self.assertIn("Reconcile core (spec 01 §30): 3 scenarios, 2 tested, 1 with a reason, 0 open", page)
        self.assertIn("| 01#2 | second | none: a reason |", page)
        self.assertIn("| 02-14.1#1 | third | `src/a/test-x.c` /room/row |", page)

    def test_complaints(self):
        for c_tag, python_tag, said in (("/* spec:01#1 */", "", "stands at no test"), ("", "spec:01#1", "stands at no test"),
                                        ("/* spec:01#9 */", "", "is not in"), ("", "spec:01-1", "is not in"),
                                        ("", "field:FR-B1", "is not in")):
            complaints = coverage.check(self.tree(c_tag, python_tag), {"tags"})
            self.assertEqual(len(complaints), 1)
            self.assertIn(said, complaints[0])
        self.assertEqual(coverage.check(self.tree(python_tag="spec: see 01"), {"tags"}), [])

    def test_reason_beside_tests(self):
        complaints = coverage.check(self.tree(listed=LIST.replace("01#1 first", "01#1 first\n  = none needed")), {"tags"})
        self.assertEqual(len(complaints), 1)
        self.assertIn("01#1 has a reason", complaints[0])

    def test_listed_twice(self):
        complaints = coverage.check(self.tree(listed=LIST + "01#3 again\n"), {"tags"})
        self.assertEqual(len(complaints), 1)
        self.assertIn("01#3 is listed twice", complaints[0])

    def test_gaps_and_old_page(self):
        root = self.tree(listed=LIST.replace("  = a reason\n", ""))
        with open(os.path.join(root, coverage.PAGE), "w", encoding="utf-8") as file:
            file.write("old\n")
        complaints = coverage.check(root, {"gaps", "page"})
        self.assertEqual(len(complaints), 2)
        self.assertIn("is old", complaints[0])
        self.assertIn("01#2 has neither", complaints[1])

    def test_parts_that_are_not_complete(self):
        _, prefix, is_complete = coverage.PARTS[-1]
        self.assertFalse(is_complete)
        self.assertEqual(coverage.check(self.tree(listed=LIST + prefix + "B02 sixth\n"), {"gaps"}), [])


if __name__ == "__main__":
    unittest.main()
