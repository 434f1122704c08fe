# SPDX-License-Identifier: GPL-2.0
"""Tests of testbed.suites.test_kunit."""

import re

import pytest

from testbed.boot.dmesg import unstamped
from testbed.suites.test_kunit import _CASE, _UP, has_in_trace, reasons


@pytest.mark.parametrize(
    ("words", "is_for_one"),
    [("#1 PREEMPT Thu Nov", True), ("#12 SMP PREEMPT Thu", False), ("#1 PREEMPT SMP", False)],
)
def test_a_kernel_tells_whether_it_is_for_one_processor(words: str, is_for_one: bool) -> None:
    """Its first line."""
    console = f"Core dump limits\nLinux version 7.3.4 (root@x) (clang version 19) {words} 2026\n"
    assert bool(_UP.search(console)) == is_for_one


def test_a_complaint_is_known_if_all_of_its_traces_are() -> None:
    """The function of another suite is no excuse."""
    known = re.compile("spinlock5tests")
    once = "[ 1.0] WARNING: at check\n[ 1.0] Call Trace:\n[ 1.0]  spinlock5tests::run\n"
    other = "[ 2.0] WARNING: at check\n[ 2.0] Call Trace:\n[ 2.0]  net::run\n"
    assert has_in_trace(once, "WARNING: at check", known)
    assert not has_in_trace(once + 60 * "x\n" + other, "WARNING: at check", known)
    assert not has_in_trace(once, "WARNING: at another", known)


def test_cases_of_modules_are_found() -> None:
    """Those of a suite are behind blanks; the suites themselves are no cases."""
    console = """\
[    1.420000] 1..0
[    1.430000]     # Subtest: driver_ring
[    1.440000]     ok 1 good
[    1.440000]     # bad: EXPECTATION FAILED at ring.rs:1
[    1.440000]     not ok 2 bad
[    1.440000][    T1]     ok 3 absent # SKIP one CPU\r
[    1.440000] not ok 1 driver_ring
[    1.450000] look: ok 1 it
"""
    found = [case.groups() for case in map(_CASE.match, unstamped(console)) if case]
    assert found == [
        (None, "good", None, None),
        ("not ", "bad", None, None),
        (None, "absent", " # SKIP one CPU", "one CPU"),
    ]
    assert reasons(console) == {"absent": "one CPU"}
