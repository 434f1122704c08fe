# SPDX-License-Identifier: GPL-2.0
"""Two lanes side by side: an emulated machine keeps little more than one processor busy, so
the other one builds and tests meanwhile. One kernel's suites are in one lane. Those that need no
kernel are where there is less to do."""

from __future__ import annotations

from collections.abc import Iterable

QEMU, REST = "qemu", "rest"
# The suites of the kernels that QEMU runs in a default run, and others without a kernel;
# everything else is the rest.
_QEMU = (
    "cargo", "orderings", "kernel-lint", "compile-fail", "kunit", "e2e-rust", "e2e-debug",
    "e2e-debug-e1000e", "litmus", "e2e-sleep", "e2e-e1000e", "cfi-types", "objects", "compare",
)  # fmt: skip


def lane_of(suite: str) -> str:
    """The lane of a suite."""
    return QEMU if suite in _QEMU else REST


def lanes_of(suites: Iterable[str]) -> list[str]:
    """The lanes that some suites need."""
    return sorted({lane_of(suite) for suite in suites})
