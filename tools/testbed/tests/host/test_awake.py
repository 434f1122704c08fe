# SPDX-License-Identifier: GPL-2.0
"""Processors that are kept awake.

The limits are long, as processes of the idle class get little time on a loaded machine.
"""

from __future__ import annotations

import os
import time
import unittest
from pathlib import Path

from testbed.host.awake import awake


def _until(seconds: float, pid: int, policy: int) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.sched_getscheduler(pid) == policy:
            return True
        time.sleep(0.02)
    return False


class Awake(unittest.TestCase):
    """Busy processes yield, and end."""

    def test_each_has_its_processor_and_gives_way(self) -> None:
        here = sorted(os.sched_getaffinity(0))[:2]
        with awake(here, os.getpid()) as pids:
            self.assertEqual(len(pids), len(here))
            for processor, pid in zip(here, pids, strict=True):
                self.assertTrue(_until(60, pid, os.SCHED_IDLE))
                deadline = time.monotonic() + 60
                while os.sched_getaffinity(pid) != {processor} and time.monotonic() < deadline:
                    time.sleep(0.02)
                self.assertEqual(os.sched_getaffinity(pid), {processor})
        for pid in pids:
            self.assertFalse(Path(f"/proc/{pid}").exists())

    def test_it_goes_if_an_error_passes(self) -> None:
        pids: list[int] = []
        with self.assertRaises(KeyError), awake([min(os.sched_getaffinity(0))], os.getpid()) as one:
            pids += one
            raise KeyError
        self.assertFalse(Path(f"/proc/{pids[0]}").exists())

    def test_it_goes_by_itself_without_its_parent(self) -> None:
        # The given parent is not its own.
        with awake([min(os.sched_getaffinity(0))], 0) as pids:
            deadline = time.monotonic() + 60
            path = Path(f"/proc/{pids[0]}/stat")
            while path.read_text().split()[2] != "Z" and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertEqual(path.read_text().split()[2], "Z")
