# SPDX-License-Identifier: GPL-2.0
"""Work in a thread beside the work of the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")
Watch = Callable[[], None]


class _GivenUp(BaseException):
    """The caller has failed, or was interrupted."""


class Aside(Generic[T]):
    """Runs a function beside the block of a `with` statement.

    Both sides call a function now and then that ends them if the other one has failed: the
    function is given its own, and the block calls `check`. So a failure is told at once, and
    nothing runs on after the block.
    """

    def __init__(self, make: Callable[[Watch], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._error: Exception | None = None
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def check(self) -> None:
        """Raise the error of the function, if it has failed."""
        if self._error is not None:
            raise self._error

    def result(self) -> T:
        """Wait for the function; returns its result, or raises its error."""
        self._thread.join()
        self.check()
        return self._made[0]

    def __enter__(self) -> Aside[T]:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._given_up.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._made.append(self._make(self._watch))
        except _GivenUp:
            pass
        except Exception as error:
            self._error = error

    def _watch(self) -> None:
        if self._given_up.is_set():
            raise _GivenUp
