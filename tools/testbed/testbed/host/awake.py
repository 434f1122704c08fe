# SPDX-License-Identifier: GPL-2.0
"""Keeps processors from sleeping while something is measured on them.

The hypervisor takes away an idle processor of a virtual machine, and it takes
long to come back. A process of the idle scheduling class keeps the processor
busy, and yields to any other process at once.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

# Ends by itself if its parent has died.
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
