# SPDX-License-Identifier: GPL-2.0
"""Lanes, processes that run tests side by side, and groups: tests that one lane runs in a row.

A guest of User-Mode Linux keeps a processor busy for a part of its time only, so each program of
those suites is a group of its own, which goes to whichever lane is free; the lane keeps its guest
for the next one. An emulated machine keeps a whole processor busy: the suites of such a
kernel are one group.
"""

from testbed.catalogue import GROUPS

# The most lanes, however many processors there are.
MOST = 8
# The group of suites that measure: no other test runs meanwhile.
QUIET = "quiet"
# In the order in which groups begin, the others behind them: each that a kernel is built for, as
# early as possible.
_FIRST = ("debug", "kunit-uml", "perf", "cargo", "python", "code")
# Suites whose programs share nothing but the kernel.
_SPREAD = ("e2e-uml", "e2e-c", "e2e-kx4")


def group_of(suite: str, program: str = "", config: str = "") -> str:
    """The group of a test: that of its suite, of its program, or of the kernel it names."""
    if suite in _SPREAD and program:
        return f"{suite}/{program}"
    if config == "perf":
        return "perf"
    return GROUPS.get(suite, suite)


def place_of(group: str) -> int:
    """The place of a group: some begin before the others, and those that measure are the last."""
    if group in _FIRST:
        return _FIRST.index(group)
    return len(_FIRST) + (group == QUIET)


def side_by_side(processors: int) -> int:
    """The number of lanes: each waits half of its time."""
    return min(max(2 * processors, 2), MOST)
