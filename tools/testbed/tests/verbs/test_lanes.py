# SPDX-License-Identifier: GPL-2.0
"""Suites that run side by side."""

from __future__ import annotations

import contextlib
import io
import threading
import unittest

from testbed.host import ui
from testbed.verbs import test
from testbed.verbs.test import Suite


def _suites(*names: str) -> list[Suite]:
    """Suites whose names begin with their lane."""
    return [Suite(name, "", name.split("-")[0]) for name in names]


class Lanes(unittest.TestCase):
    def tearDown(self) -> None:
        ui._cancelled.clear()

    def test_lanes_overlap_and_keep_their_order(self) -> None:
        both = threading.Barrier(2, timeout=10.0)
        order: list[str] = []

        def run(suite: Suite) -> None:
            both.wait()
            order.append(suite.name)

        test._in_lanes(_suites("debug-1", "rest-1", "debug-2", "rest-2"), run)
        for lane in ("debug", "rest"):
            self.assertEqual(
                [name for name in order if name.startswith(lane)], [f"{lane}-1", f"{lane}-2"]
            )

    def test_one_lane_runs_in_the_callers_thread(self) -> None:
        threads = []
        test._in_lanes(_suites("rest-1"), lambda _: threads.append(threading.current_thread()))
        self.assertEqual(threads, [threading.current_thread()])

    def test_lines_tell_their_lane(self) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            test._in_lanes(_suites("debug-1", "rest-1"), lambda suite: ui.say(suite.name))
            ui.say("end")
        self.assertEqual(
            sorted(out.getvalue().splitlines()), ["debug | debug-1", "end", "rest  | rest-1"]
        )

    def test_an_error_beside_reaches_the_caller(self) -> None:
        def run(suite: Suite) -> None:
            if suite.lane == "rest":
                raise ValueError(suite.name)

        with self.assertRaisesRegex(ValueError, "rest-1"):
            test._in_lanes(_suites("debug-1", "rest-1"), run)

    def test_an_interruption_ends_the_other_lane(self) -> None:
        started = threading.Event()
        ended = threading.Event()

        def run(suite: Suite) -> None:
            if suite.lane == "debug":
                started.wait(10.0)
                raise KeyboardInterrupt
            started.set()
            try:
                while True:
                    ui._cancelled.wait(10.0)
                    ui.check_cancelled()
            finally:
                ended.set()

        with self.assertRaises(KeyboardInterrupt):
            test._in_lanes(_suites("debug-1", "rest-1"), run)
        self.assertTrue(ended.is_set())


if __name__ == "__main__":
    unittest.main()
