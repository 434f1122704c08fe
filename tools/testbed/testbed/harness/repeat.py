# SPDX-License-Identifier: GPL-2.0
"""REPEAT= and LOAD=: the same tests several times, beside a busy processor.

A test that fails now and then without a defect of the code is a defect itself; this finds it.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from testbed.harness.summary import Summary
from testbed.host import proc
from testbed.host.ui import clock, say, since_start

HOG = "while True: pass"


@contextmanager
def load(wanted: bool) -> Iterator[None]:
    """Keep a processor busy."""
    if not wanted:
        yield
        return
    hog = subprocess.Popen([sys.executable, "-c", HOG], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        proc.stop(hog)


def run(times: int, once: Callable[[Summary], int]) -> int:
    """Run the tests; returns the worst exit code. A run that fails ends nothing."""
    lines, failed, worst = list[str](), Counter[str](), 0
    for number in range(1, times + 1):
        summary, began = Summary(), since_start()
        code = once(summary)
        worst = max(worst, code)
        took = clock(since_start() - began)
        lines.append(f"run {number} of {times}: {summary.last_line}, exit code {code}, {took}")
        failed.update(summary.failures)
        say("")
        say(*lines)
    say(*(f"failed {count} times: {name}" for name, count in failed.most_common()))
    return worst
