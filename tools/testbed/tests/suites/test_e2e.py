# SPDX-License-Identifier: GPL-2.0
"""Programs of the end-to-end suites: those of the control run again if they fail."""

from __future__ import annotations

from typing import Any, cast

import pytest

from testbed.harness.results import Results
from testbed.selftests.kinds import KINDS, Kind
from testbed.suites import test_e2e

NAME = "drivers/net/hw/vlan.py"
PASSES = ["1..2", "ok 1 vlan.tags", "ok 2 vlan.filter"]
FAILS = ["1..2", "ok 1 vlan.tags", "# Check failed 3 != 4", "not ok 2 vlan.filter"]


class Guest:
    """A guest with a script: the lines of each run."""

    def __init__(self, *runs: list[str], console: str = "", dies: bool = False) -> None:
        self.runs = list(runs)
        self.died = ""
        self._consoles = [console]
        self._dies = dies

    @property
    def alive(self) -> bool:
        return not self.died

    def run(self, name: str, seconds: float, follow: Any) -> list[str]:
        if self._dies:
            self.died = "panic"
        return [f"# begin {name}", *self.runs.pop(0), f"# end {name} 0"]

    def console(self, name: str) -> str:
        return self._consoles.pop() if self._consoles else ""

    def breaches(self) -> list[object]:
        return []


class Told(Results):
    """Guests and results of one call of test_program()."""

    def __init__(self, suite: str, guest: Guest) -> None:
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self._guest = guest
        kind = next(one for one in KINDS if one.suite == suite)
        test_e2e.test_program(cast(pytest.FixtureRequest, None), self, self, kind, "vlan.py")  # type: ignore[arg-type]

    def of(self, kind: Kind) -> tuple[Guest, bool]:
        return self._guest, False

    def note(self, program: str) -> None:
        pass

    def add(self, name: str, problem: str | None = None) -> None:
        if problem is None:
            self.passed.append(name)
        else:
            self.failed[name] = problem

    def skip(self, name: str, why: str) -> None:
        self.skipped[name] = why


def test_a_program_that_passes_runs_once() -> None:
    """A second run would find no script."""
    told = Told("e2e-c", Guest(PASSES))
    assert told.passed[:2] == ["tags", "filter"] and not told.failed and not told.skipped


def test_a_failure_of_the_control_that_does_not_stay_is_listed() -> None:
    """It counts neither as passed nor as failed, and keeps its reason."""
    told = Told("e2e-c", Guest(FAILS, PASSES))
    assert told.passed[:2] == ["tags", "filter"] and not told.failed
    assert told.skipped == {"filter, first run": "failed once: 3 != 4"}


def test_a_failure_of_the_control_that_stays_counts() -> None:
    """Two runs, one failure."""
    told = Told("e2e-c", Guest(FAILS, FAILS))
    assert told.failed == {"filter": "3 != 4"} and "filter, first run" in told.skipped


def test_a_complaint_of_the_kernel_is_a_failure_of_the_run() -> None:
    """As it is of the cases."""
    told = Told("e2e-c", Guest(PASSES, PASSES, console="[ 1.0] WARNING: CPU: 0 at net/core.c:1\n"))
    assert not told.failed and list(told.skipped) == ["no kernel complaint, first run"]


@pytest.mark.parametrize("suite", ["e2e-rust", "e2e-uml", "e2e-sleep", "cfi", "rt"])
def test_the_driver_has_one_run(suite: str) -> None:
    """A failure of the driver under test is one, whatever a second run would say."""
    told = Told(suite, Guest(FAILS))
    assert told.failed == {"filter": "3 != 4"} and not told.skipped


def test_a_guest_that_has_died_is_not_asked_again() -> None:
    """Its failure counts."""
    told = Told("e2e-c", Guest(FAILS, dies=True))
    assert "filter" in told.failed
