# SPDX-License-Identifier: GPL-2.0
"""Counting tests: TAP, KUnit's totals, remembered warnings, the last line."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from testbed.build import warnings
from testbed.suites import tap
from testbed.suites.booted import KUNIT_TOTAL, segments
from testbed.suites.report import Report, last_line

OUTPUT = """\
# begin 10-first
ok 1 - first: works
not ok 2 - first: breaks # expected 1, got 2
ok 3 - first: cannot # SKIP no such feature
# end 10-first 1
# begin 20-silent
# end 20-silent 0
# begin 30-dies
# end 30-dies 7
# begin 40-hangs
ok 1 - hangs: began
"""

LOG = """\
  CLIPPY     L rust/kernel.o
warning: unused variable: `x`
  --> /somewhere/tree/rust/kernel/net/napi.rs:12:9
   |
  RUSTC [M] samples/rust/rust_minimal.o
"""


class TapTest(unittest.TestCase):
    def test_every_kind_of_ending_is_counted(self) -> None:
        report = Report("e2e")
        scripts = tap.parse(OUTPUT)
        self.assertEqual([one.name for one in scripts],
                         ["10-first", "20-silent", "30-dies", "40-hangs"])  # fmt: skip
        for script in scripts:
            tap.judge(script, report)
        # first: works, silent as a whole, hangs: began
        self.assertEqual(report.passed, 3)
        # first: breaks, dies, hangs
        self.assertEqual(report.failed, 3)
        self.assertIn("40-hangs: it did not end", report.failures)
        self.assertEqual(len(report.skips), 1)

    def test_skips_are_not_passes(self) -> None:
        report = Report("x")
        report.skip("a", "missing")
        self.assertEqual(last_line([report]), "0 passed, 0 failed")
        report.add("b")
        report.add("c", "broken")
        self.assertEqual(last_line([report]), "1 passed, 1 failed")


class WarningsTest(unittest.TestCase):
    def test_a_warning_lives_until_its_crate_is_compiled_again(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            build = Path(name)
            warnings.update(build, LOG)
            expected = {"in rust/kernel/net/napi.rs:12: unused variable: `x`"}
            self.assertEqual(warnings.known(build), expected)
            warnings.update(build, "  RUSTC [M] samples/rust/rust_minimal.o\n")
            self.assertEqual(warnings.known(build), expected)
            warnings.update(build, "  CLIPPY     L rust/kernel.o\n")
            self.assertEqual(warnings.known(build), set())


class KernelTest(unittest.TestCase):
    def test_kunit_totals_with_and_without_failures(self) -> None:
        text = "Testing complete. Ran 375 tests: passed: 370, failed: 3, skipped: 2"
        found = KUNIT_TOTAL.search(text)
        assert found is not None
        self.assertEqual(found.groups(), ("375", "370", "3", None, "2", None))
        found = KUNIT_TOTAL.search("Ran 4 tests: failed: 4")
        assert found is not None
        self.assertEqual(found.groups(), ("4", None, "4", None, None, None))

    def test_the_console_is_cut_at_the_marks(self) -> None:
        parts = segments("boot\n[ 1.0] skbulk: begin 10-a\r\nx\n[ 2.0] skbulk: begin 20-b\ny\n")
        self.assertEqual(parts[""], "boot")
        self.assertIn("x", parts["10-a"])
        self.assertNotIn("y", parts["10-a"])


if __name__ == "__main__":
    unittest.main()
