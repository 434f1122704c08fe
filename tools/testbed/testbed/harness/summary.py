# SPDX-License-Identifier: GPL-2.0
"""Output of make test: failures at once, each suite's sum, one line at the end."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from testbed.catalogue import SUITES
from testbed.harness import checks, shards
from testbed.harness.results import ITEM, NAME, SUITE
from testbed.host.ui import say

# The reason of a test that did not begin, before the limit.
TOO_LATE = "not run: no time was left, LIMIT="
# Characters of a reason; pytest's own report of a failure is complete.
_LONGEST = 400


@dataclass
class Sum:
    """One suite's sum. Skipped tests are never counted as passed."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Summary:
    """A pytest plugin for the process that counts."""

    def __init__(self) -> None:
        self.sums: dict[str, Sum] = defaultdict(Sum)
        self.seconds: dict[str, float] = {}
        self.checks: checks.Checks = defaultdict(dict)
        self.unfinished: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one result; print a failure at once."""
        properties = dict(report.user_properties)
        suite = str(properties.get(SUITE, "python"))
        report.nodeid = _name(suite, report.nodeid, properties.get(NAME))
        one = self.sums[suite]
        one.seconds += report.duration
        name = report.nodeid.removeprefix(f"{suite}::").removeprefix(f"{suite}/")
        item = str(properties.get(ITEM, ""))
        if report.failed:
            when = "" if report.when == "call" else f" ({report.when})"
            one.failed.append(f"{name}{when}: {reason(report)}")
            say(f"    FAILED  {suite}: {one.failed[-1]}")
            self._list(item, report.nodeid, "failed")
        elif report.skipped and reason(report).startswith(TOO_LATE):
            one.not_run.append(name)
            self.unfinished.add(item)
        elif report.skipped:
            one.skipped.append(f"{name}: {reason(report)}")
            excused = checks.MACHINES.match(reason(report))
            self._list(item, report.nodeid, "excused" if excused else "skipped")
        elif report.when == "call":
            one.passed += 1
            self._list(item, report.nodeid, "passed")

    def _list(self, item: str, name: str, outcome: checks.Outcome) -> None:
        if not item:
            return
        name = name.removeprefix(f"{item}::").removeprefix(f"{checks.suite_of(item)}::")
        if self.checks[item].get(name) != "failed":
            self.checks[item][name] = outcome

    def call_the_roll(self, known: checks.Checks) -> None:
        """Compare with the list of all checks; what an item lacks is a failure of it, unless it
        has failed already."""
        failed = {item for item, one in self.checks.items() if "failed" in one.values()}
        for item, words in checks.lacking(known, self.checks, self.unfinished | failed).items():
            suite = checks.suite_of(item)
            name = f"{item.removeprefix(f'{suite}/')}: {words}: see {checks.FOLDER}"
            self.sums[suite].failed.append(name)
            say(f"    FAILED  {suite}: {name}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is a failure of its own."""
        if report.failed:
            self.sums["python"].failed.append(f"{report.nodeid}: {report.longreprtext}")

    def pytest_testnodedown(self, node: Any) -> None:
        """Collect the durations of a lane's items at its end."""
        self.seconds.update(getattr(node, "workeroutput", {}).get("seconds", {}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The same for items of this process."""
        known = session.config.stash[shards.SECONDS]
        self.seconds.update(known)

    def show(self) -> None:
        """Each suite's own summary, in the order of the catalogue."""
        for suite in SUITES:
            if suite not in self.sums:
                continue
            one = self.sums[suite]
            lists = (("FAILED ", one.failed), ("skipped", one.skipped), ("not run", one.not_run))
            for words, lines in lists:
                say(*(f"    {words} {suite}: {line}" for line in lines))
            late = f", {len(one.not_run)} not run" if one.not_run else ""
            say(f"    {suite}: {one.passed} passed, {len(one.failed)} failed, "
                f"{len(one.skipped)} skipped{late}")  # fmt: skip

    def without(self, names: Iterable[str]) -> list[str]:
        """Suites, and programs of them, that have no item."""
        items = [one.removesuffix(".py") for one in (*self.checks, *self.unfinished)]
        # The kernel's own programs are one item.
        return [name for name in names if not name.startswith("selftests/")
                and not any(one == name.removesuffix(".py") or one.startswith(f"{name}/")
                            for one in items)]  # fmt: skip

    @property
    def failures(self) -> list[str]:
        """The tests that have failed, with their suites and reasons."""
        return [f"{suite}: {line}" for suite, one in self.sums.items() for line in one.failed]

    @property
    def failed(self) -> bool:
        """Whether any test has failed."""
        return any(one.failed for one in self.sums.values())

    @property
    def last_line(self) -> str:
        """The one line that make test ends with."""
        passed = sum(one.passed for one in self.sums.values())
        failed = sum(len(one.failed) for one in self.sums.values())
        # Tests that did not begin for lack of time, each of many results perhaps.
        late = sum(len(one.not_run) for one in self.sums.values())
        return f"{passed} passed, {failed} failed" + (f", {late} not run" if late else "")


def _name(suite: str, nodeid: str, result: object) -> str:
    """The name of a test, beginning with its suite. One of many results has its own; in the
    process that runs it, xdist needs the item's id."""
    if result:
        return str(result)
    name = nodeid.partition("@")[0]
    return f"{suite}/{name}" if suite == "python" else f"{suite}::{name.rpartition('::')[2]}"


def reason(report: pytest.TestReport) -> str:
    """The reason of a failure or a skip, on one line."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message) if crash else str(report.longrepr)
    return " ".join(text.split("\n")[0].split())[:_LONGEST]
