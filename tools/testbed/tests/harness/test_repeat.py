# SPDX-License-Identifier: GPL-2.0
"""REPEAT= and LOAD=."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from testbed.harness import repeat
from testbed.harness.summary import Summary


def _hogs() -> list[str]:
    """The processor hogs among this process's children."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [one for one in children
            if repeat.HOG.encode() in Path(f"/proc/{one}/cmdline").read_bytes()]  # fmt: skip


def test_a_failure_ends_nothing_and_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    codes = [0, 1, 1, 0]

    def once(summary: Summary) -> int:
        summary.sums["kunit"].passed = 3
        if code := codes.pop():
            summary.sums["kunit"].failed.append("a: it is late")
        return code

    assert repeat.run(4, once) == 1
    said = capsys.readouterr().out.splitlines()
    last = [line.rpartition(",")[0] for line in said[-5:-1]]
    assert last == [
        "run 1 of 4: 3 passed, 0 failed, exit code 0",
        "run 2 of 4: 3 passed, 1 failed, exit code 1",
        "run 3 of 4: 3 passed, 1 failed, exit code 1",
        "run 4 of 4: 3 passed, 0 failed, exit code 0",
    ]
    assert said[-1] == "failed 2 times: kunit: a: it is late"


def test_the_load_ends_with_the_tests() -> None:
    with repeat.load(True):
        deadline = time.monotonic() + 60
        while not _hogs() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(_hogs()) == 1
    assert not _hogs()
    with repeat.load(False):
        assert not _hogs()
