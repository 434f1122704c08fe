# SPDX-License-Identifier: GPL-2.0
"""The judgement of litmus tests."""

from __future__ import annotations

import unittest

from testbed.suites.test_litmus import judge

NEVER = "C test\n\n(*\n * Result: Never\n *)\n"
SOMETIMES = NEVER.replace("Never", "Sometimes")


class Judge(unittest.TestCase):
    """Every way in which a test can fail."""

    def test_the_expected_result_is_a_pass(self) -> None:
        self.assertIsNone(judge(NEVER, "States 3\nObservation test Never 0 3\n"))
        self.assertIsNone(judge(SOMETIMES, "Observation test Sometimes 1 3\n"))

    def test_another_result_fails_and_names_both(self) -> None:
        found = judge(NEVER, "Observation test Sometimes 1 3\n")
        self.assertEqual(found, "expected Never, observed Sometimes")

    def test_a_race_fails_where_nothing_may_happen(self) -> None:
        output = "Flag data-race\nObservation test Never 0 3\n"
        self.assertEqual(judge(NEVER, output), "herd7 flags a data race")
        self.assertIsNone(judge(SOMETIMES, output.replace("Never 0", "Sometimes 1")))

    def test_a_file_without_expectation_fails(self) -> None:
        self.assertIsNotNone(judge("C test\n", "Observation test Never 0 3\n"))

    def test_no_result_fails(self) -> None:
        self.assertEqual(judge(NEVER, "syntax error\n"), "herd7 gave no result")
