# SPDX-License-Identifier: GPL-2.0
"""Many results of one item: a boot has hundreds, with names known only then."""

import time
from collections.abc import Iterable, Mapping
from typing import Literal

import pytest

from testbed.selftests.results import SKIP, XFAIL, Case

# Keys of a report's user_properties: the suite; the item in the list of all checks; and the name
# of one result of many, which becomes the test's name in the process that counts.
SUITE, ITEM, NAME = "suite", "item", "result"
# As many problems are named.
_NAMED = 3
# The item that the same process runs next, or None.
NEXT = pytest.StashKey[pytest.Item | None]()


class Results:
    """Reports each result at once as a test of its own.

    listed: whether the item has the same results in each run. Those about a guest come with the
    program for which a lane boots it.
    """

    def __init__(self, item: pytest.Item, prefix: str, listed: bool = True) -> None:
        self._item = item
        self._prefix = prefix
        self._properties = [one for one in item.user_properties if listed or one[0] != ITEM]
        self._names: dict[str, int] = {}
        self._last = time.time()

    def add(self, name: str, problem: str | None = None) -> None:
        """One test: passed, or failed because of `problem`."""
        self._report(name, "passed" if problem is None else "failed", problem)

    def none(self, name: str, problems: Iterable[object]) -> None:
        """One test: passed if there is no problem; the first few are its reason."""
        found = [str(one) for one in problems]
        more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
        self.add(name, "; ".join([*found[:_NAMED], *more]) or None)

    def says(self, name: str, words: str, console: str) -> None:
        """One test: passed if the console has some words."""
        self.add(name, None if words in console else f"the console does not say '{words}'")

    def cases(self, found: Mapping[str, Case]) -> None:
        """The cases of a program, each as one test."""
        for name, case in found.items():
            if case.result in (SKIP, XFAIL):
                self.skip(name, case.reason)
            else:
                self.add(name, case.problem)

    def skip(self, name: str, why: str) -> None:
        """One test that could not be run here."""
        self._report(name, "skipped", why)

    def skip_all(self, names: Iterable[str], why: str) -> None:
        """Tests that could not be run here, all for one reason."""
        for name in names:
            self.skip(name, why)

    def _report(
        self, name: str, outcome: Literal["passed", "failed", "skipped"], words: str | None
    ) -> None:
        count = self._names[name] = self._names.get(name, 0) + 1
        if count > 1:
            name = f"{name} ({count})"
        began, self._last = self._last, time.time()
        path, line, _ = self._item.location
        report = pytest.TestReport(
            nodeid=self._item.nodeid,
            location=self._item.location,
            keywords={},
            outcome=outcome,
            longrepr=(path, line or 0, words or "") if outcome == "skipped" else words,
            when="call",
            duration=self._last - began,
            start=began,
            stop=self._last,
            user_properties=[*self._properties, (NAME, f"{self._prefix}::{name}")],
        )
        self._item.ihook.pytest_runtest_logreport(report=report)
