# SPDX-License-Identifier: GPL-2.0
"""make lint: the linters alone."""

from __future__ import annotations

from testbed.env import Env
from testbed.suites import host


def main(env: Env) -> int:
    """The linters alone."""
    report = host.lint(env)
    report.show()
    return 1 if report.failed else 0
