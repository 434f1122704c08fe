# SPDX-License-Identifier: GPL-2.0
"""Tests of testbed.suites.test_kunit."""

import pytest

from testbed.suites.test_kunit import _UP


@pytest.mark.parametrize(
    ("words", "is_for_one"),
    [("#1 PREEMPT Thu Nov", True), ("#12 SMP PREEMPT Thu", False), ("#1 PREEMPT SMP", False)],
)
def test_a_kernel_tells_whether_it_is_for_one_processor(words: str, is_for_one: bool) -> None:
    """Its first line."""
    console = f"Core dump limits\nLinux version 7.3.4 (root@x) (clang version 19) {words} 2026\n"
    assert bool(_UP.search(console)) == is_for_one
