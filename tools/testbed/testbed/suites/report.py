# SPDX-License-Identifier: GPL-2.0
"""Counts tests: what every suite hands back, and the sum of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from testbed.host.ui import say


@dataclass
class Report:
    """What one suite found. Skipped tests are never counted as passed."""

    name: str
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """How many tests failed."""
        return len(self.failures)

    def add(self, name: str, problem: str | None = None) -> None:
        """Count one test: passed, or failed because of `problem`."""
        if problem is None:
            self.passed += 1
        else:
            self.failures.append(f"{name}: {problem}" if problem else name)

    def skip(self, name: str, why: str) -> None:
        """Count one test that could not be run here."""
        self.skips.append(f"{name}: {why}")

    def show(self) -> None:
        """Print the suite's own summary."""
        for text in self.failures:
            say(f"    FAILED  {self.name}: {text}")
        for text in self.skips:
            say(f"    skipped {self.name}: {text}")
        say(
            f"    {self.name}: {self.passed} passed, {self.failed} failed, "
            f"{len(self.skips)} skipped"
        )


def last_line(reports: Iterable[Report]) -> str:
    """The one line that make test ends with."""
    every = list(reports)
    passed = sum(one.passed for one in every)
    failed = sum(one.failed for one in every)
    return f"{passed} passed, {failed} failed"
