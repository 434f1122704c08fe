# SPDX-License-Identifier: GPL-2.0
"""Work in a thread beside the work of the caller."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
Watch = Callable[[], None]


@contextmanager
def beside(make: Callable[[Watch], T]) -> Iterator[Future[T]]:
    """Run a function beside the block of a `with` statement.

    Both sides look now and then whether the other one has failed, and end then: the function is
    given a `Watch`, and the block calls `check`. So a failure is told at once, and nothing runs
    on after the block.
    """
    given_up = threading.Event()

    def watch() -> None:
        if given_up.is_set():
            raise CancelledError

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(make, watch)
        try:
            yield made
        except BaseException:
            given_up.set()
            raise


def check(other: Future[T]) -> None:
    """Raise the error of the other side, if it has failed."""
    if other.done():
        other.result()
