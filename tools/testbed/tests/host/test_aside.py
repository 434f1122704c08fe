# SPDX-License-Identifier: GPL-2.0
"""Two sides of work: each ends if the other one fails."""

from __future__ import annotations

import time
from threading import Event

import pytest

from testbed.host.aside import Watch, beside, check
from testbed.host.ui import Failure


def endless(watch: Watch) -> None:
    """Run until `watch` raises, for some seconds at most."""
    for _ in range(1000):
        watch()
        time.sleep(0.01)
    raise AssertionError("nothing has ended this")


def test_both_sides_run_at_the_same_time() -> None:
    begun = Event()

    def wait(_: Watch) -> bool:
        return begun.wait(5)

    with beside(wait) as other:
        begun.set()
        check(other)
        assert other.result()


def test_its_failure_ends_the_block() -> None:
    def fail(_: Watch) -> None:
        raise Failure("no crates")

    with pytest.raises(Failure, match="no crates"), beside(fail) as other:
        endless(lambda: check(other))


@pytest.mark.parametrize("error", [Failure("no kernel"), KeyboardInterrupt()])
def test_a_failure_of_the_block_ends_it(error: BaseException) -> None:
    ended = Event()

    def work(watch: Watch) -> None:
        try:
            endless(watch)
        finally:
            ended.set()

    with pytest.raises(type(error)), beside(work):
        raise error
    assert ended.is_set()


def test_a_failure_is_told_at_the_end() -> None:
    def fail(_: Watch) -> None:
        raise Failure("late")

    with pytest.raises(Failure, match="late"), beside(fail) as other:
        other.result()
