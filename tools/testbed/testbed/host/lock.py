# SPDX-License-Identifier: GPL-2.0
"""Locks on files of the cache. The kernel drops them when the holder dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from testbed.host.ui import say


class Lock:
    """An exclusive lock that can be turned into a shared one.

    Building needs it exclusively; a VM that runs what was built shares it.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self.what = what
        self._fd = -1

    def __enter__(self) -> Lock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Not inheritable: a child that outlives us must not keep the lock.
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._take(fcntl.LOCK_EX)
        return self

    def share(self) -> None:
        """Let others use what is there now; nobody may change it meanwhile."""
        self._take(fcntl.LOCK_SH)

    def release(self) -> None:
        """Give it up, also before the end of the block."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self, how: int) -> None:
        try:
            fcntl.flock(self._fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"    waiting: another skbulk uses {self.what}")
            fcntl.flock(self._fd, how)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
