# SPDX-License-Identifier: GPL-2.0
"""Locks on files of the cache. The kernel drops them when the holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from testbed.host.ui import say

# Between two looks whether a shared lock can be owned.
_PAUSE = 0.5


class Lock:
    """An exclusive lock that can be turned into a shared one.

    Building needs it exclusively; a VM that runs what was built shares it.
    """

    def __init__(self, path: Path, what: str, *, shared: bool = False) -> None:
        self.path = path
        self.what = what
        self._first = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._fd = -1
        self._waited = False

    def __enter__(self) -> Lock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Not inheritable: a child that outlives us must not keep the lock.
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._take(self._first)
        return self

    def share(self) -> None:
        """Let others use what is there now; nobody may change it meanwhile."""
        self._take(fcntl.LOCK_SH)

    def try_own(self) -> bool:
        """Make a shared lock exclusive, if nobody else shares it. If not, it is shared again
        after a moment: what it guards may have changed by then."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            # Two that share it and want to own it must not wait for each other.
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            if not self._waited:
                say(f"    waiting: another skbulk uses {self.what}")
            self._waited = True
            time.sleep(_PAUSE)
            self._take(fcntl.LOCK_SH)
            return False

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
