# SPDX-License-Identifier: GPL-2.0
"""Lanes: parts of a run that share a kernel and follow one after the other. Two of them run side
by side, since an emulated machine keeps little more than one processor busy; whichever ends first
is followed by the next, the one with more tests first. Suites that need no kernel are where there
is less to do."""

from __future__ import annotations

from collections.abc import Iterable

DEBUG, UML, STOCK, PERF = "debug", "uml", "stock", "perf"
# The longest first. Everything else is in User-Mode Linux. The last lane is alone at its end,
# where it counts instructions.
_LANES = {
    DEBUG: (
        "cargo", "orderings", "kernel-lint", "compile-fail", "kunit", "e2e-rust", "e2e-debug",
        "e2e-debug-e1000e",
    ),
    STOCK: ("litmus", "e2e-c", "e2e-kx4"),
    PERF: ("e2e-sleep", "e2e-wake", "e2e-e1000e", "cfi-types", "objects", "compare"),
}  # fmt: skip


def lane_of(suite: str) -> str:
    """The lane of a suite."""
    return next((lane for lane, suites in _LANES.items() if suite in suites), UML)


def lanes_of(suites: Iterable[str]) -> list[str]:
    """The lanes that some suites need."""
    return sorted({lane_of(suite) for suite in suites})
