# SPDX-License-Identifier: GPL-2.0
"""Two lanes side by side: an emulated kernel keeps little more than one processor busy, so
the other one builds and tests meanwhile. One kernel's suites are in one lane."""

from __future__ import annotations

from collections.abc import Iterable

DEBUG, REST = "debug", "rest"
# The suites of the debug kernel; everything else is the rest.
_DEBUG = ("kernel-lint", "compile-fail", "kunit", "e2e-rust", "e2e-debug", "e2e-debug-e1000e")


def lane_of(suite: str) -> str:
    """The lane of a suite."""
    return DEBUG if suite in _DEBUG else REST


def lanes_of(suites: Iterable[str]) -> list[str]:
    """The lanes that some suites need."""
    return sorted({lane_of(suite) for suite in suites})
