# SPDX-License-Identifier: GPL-2.0
"""Keeps processors from sleeping while something is measured on them.

A processor of a virtual machine that has nothing to do is taken away, and to
get it back takes longer than most of what happens on it. A process that runs
only if no other one wants to keeps it, and gives way at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

# Ends by itself if whoever started it could not end it.
_SPIN = """
import os, sys
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
os.sched_setaffinity(0, {int(sys.argv[1])})
while os.getppid() == int(sys.argv[2]):
    for _ in range(100_000):
        pass
"""


@contextmanager
def awake(processors: Iterable[int], parent: int) -> Iterator[list[int]]:
    """Keep these processors busy; `parent` is the caller's process id."""
    spinners = [
        subprocess.Popen([sys.executable, "-c", _SPIN, str(processor), str(parent)])
        for processor in processors
    ]
    try:
        yield [one.pid for one in spinners]
    finally:
        for one in spinners:
            one.kill()
        for one in spinners:
            one.wait()
