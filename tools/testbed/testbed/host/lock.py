# SPDX-License-Identifier: GPL-2.0
"""Locks on files of the cache. The kernel drops them when the holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from testbed.host.ui import say

# Between two attempts to make a shared lock exclusive.
_PAUSE = 0.5


class Lock:
    """An exclusive lock that can be turned into a shared one.

    A build needs it exclusively; a VM that runs the build shares it.
    """

    def __init__(self, path: Path, what: str, *, shared: bool = False) -> None:
        self.path = path
        self.what = what
        self._first = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._fd = -1
        self._waited = False

    def __enter__(self) -> Lock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Not inheritable: a child that outlives this process must not keep the lock.
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._take(self._first)
        return self

    def share(self) -> None:
        """Make it shared: others may use the files, but not change them."""
        self._take(fcntl.LOCK_SH)

    def own(self) -> None:
        """Make a shared lock exclusive, once the other holders have released theirs: what it
        guards may have changed by then."""
        self._take(fcntl.LOCK_EX)

    def try_own(self) -> bool:
        """Make a shared lock exclusive, if there is no other holder. Otherwise it is shared
        again after a pause: the files may have changed by then."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            # Two holders that both want it exclusively must not wait for each other.
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            if not self._waited:
                say(f"    waiting: another skbulk uses {self.what}")
            self._waited = True
            time.sleep(_PAUSE)
            self._take(fcntl.LOCK_SH)
            return False

    def release(self) -> None:
        """Release it, possibly before the end of the block."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self, how: int) -> None:
        try:
            fcntl.flock(self._fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"    waiting: another skbulk uses {self.what}")
            fcntl.flock(self._fd, how)

    def __exit__(self, *_: object) -> None:
        self.release()
