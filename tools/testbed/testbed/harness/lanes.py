# SPDX-License-Identifier: GPL-2.0
"""Lanes: parts of a run whose suites follow one after the other. As many as there are processors,
and at least two, run side by side, since a guest keeps little more than one busy; whichever ends
first is followed by the next. Suites that need no kernel are in the first two."""

from __future__ import annotations

from collections.abc import Iterable

# In their order: two kernels are built first, each for a lane, and the third one beside tests. The
# last lane is the shortest, so that both processors are busy until the end. Two guests of User-Mode
# Linux at the same time make each other late, so their lanes are apart.
UML, DEBUG, PERF, STOCK = LANES = ("uml", "debug", "perf", "stock")
# Everything else is in User-Mode Linux.
_SUITES = {
    DEBUG: (
        "cargo", "orderings", "kernel-lint", "compile-fail", "kunit", "e2e-rust", "e2e-debug",
        "e2e-debug-e1000e",
    ),
    PERF: ("e2e-sleep", "e2e-wake", "e2e-e1000e", "cfi-types", "objects", "compare"),
    STOCK: ("litmus", "e2e-c", "e2e-kx4"),
}  # fmt: skip


def lane_of(suite: str) -> str:
    """The lane of a suite."""
    return next((lane for lane, suites in _SUITES.items() if suite in suites), UML)


def lanes_of(suites: Iterable[str]) -> list[str]:
    """The lanes that some suites need."""
    return sorted({lane_of(suite) for suite in suites}, key=LANES.index)


def side_by_side(processors: int) -> int:
    """The number of lanes that run at the same time."""
    return min(max(processors, 2), len(LANES))
