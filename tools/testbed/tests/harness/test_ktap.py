# SPDX-License-Identifier: GPL-2.0
"""KTAP in the text of a console."""

from __future__ import annotations

import unittest

from testbed.harness import ktap

CONSOLE = """\
[    1.420000] KTAP version 1
[    1.420000] 1..0
[    1.430000]     KTAP version 1
[    1.430000]     # Subtest: driver_ring
[    1.430000]     1..3
[    1.440000]     ok 1 good
[    1.440000]     # bad: EXPECTATION FAILED at ring.rs:1
[    1.440000]     not ok 2 bad
[    1.440000][    T1]     ok 3 absent # SKIP one CPU\r
[    1.440000] # driver_ring: pass:1 fail:1 skip:1 total:3
[    1.440000] not ok 1 driver_ring
"""


class CasesTest(unittest.TestCase):
    def test_cases_of_modules_are_found(self) -> None:
        found = [(name, case.result) for name, case in ktap.cases(CONSOLE)]
        self.assertEqual(found, [("good", "pass"), ("bad", "fail"), ("absent", "skip")])

    def test_other_lines_are_no_cases(self) -> None:
        self.assertEqual(ktap.cases("[    0.1] look: ok 1 it\nok 1 suite\n"), [])
