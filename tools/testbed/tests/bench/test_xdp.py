# SPDX-License-Identifier: GPL-2.0
"""The rows of make bench ONLY=xdp."""

from __future__ import annotations

import json
import unittest

from insn.counts import WindowCount
from testbed.bench import xdp
from testbed.host.ui import Failure


def line(driver: str, case: str, frames: int = 100, wrong: int = 0) -> str:
    return json.dumps({"driver": driver, "case": case, "frames": frames, "wrong": wrong})


def window(module: str, in_driver: int, elsewhere: int) -> WindowCount:
    parts = {module: in_driver, "vmlinux": elsewhere}
    return WindowCount("label", complete=True, total=0, by_module=parts, functions=[])


LINES = [line("rust", "nothing", 0), line("c", "nothing", 0),
         line("rust", "drop 60"), line("c", "drop 60")]  # fmt: skip
WINDOWS = [window("ixgbe_rust", 0, 1000), window("ixgbe", 500, 1500),
           window("ixgbe_rust", 10_000, 3000), window("ixgbe", 15_000, 7000)]  # fmt: skip


class Rows(unittest.TestCase):
    """From windows to instructions per frame."""

    def test_the_path_is_without_the_marks(self) -> None:
        rows = {row.case: row for row in xdp.counts(LINES, WINDOWS)}
        driver, path = rows["drop 60 driver"], rows["drop 60 path"]
        self.assertEqual((driver.ours, driver.reference, driver.ratio), (100, 150, 1.5))
        self.assertEqual((path.ours, path.reference), (120, 200))

    def test_frames_that_went_wrong_are_no_figure(self) -> None:
        lines = [*LINES, line("c", "tx 60", wrong=1), line("c", "tx 60"), line("rust", "tx 60", 50)]
        windows = [*WINDOWS, window("ixgbe", 1, 1), window("ixgbe", 7000, 5000),
                   window("ixgbe_rust", 500, 1000)]  # fmt: skip
        rows = {row.case: row for row in xdp.counts(lines, windows)}
        self.assertEqual((rows["tx 60 driver"].ours, rows["tx 60 driver"].reference), (10, 70))

    def test_a_verdict_that_failed_has_no_window(self) -> None:
        failure = json.dumps({"case": "redirect", "failed": "no ring", "pair": 0})
        self.assertEqual(len(xdp.counts([*LINES, failure], WINDOWS)), 2)

    def test_a_window_that_is_missing_is_told(self) -> None:
        with self.assertRaises(Failure):
            xdp.counts(LINES, WINDOWS[:-1])

    def test_each_verdict_has_all_lengths(self) -> None:
        found: dict[str, set[int]] = {}
        for cell in xdp.cells():
            found.setdefault(cell["case"].split()[0], set()).add(cell["size"])
        short = {60, 128, 512, 1514}
        self.assertEqual(found.pop("xsk"), short)
        self.assertEqual(found.pop("router"), short)
        self.assertEqual(found, dict.fromkeys(("none", "pass", "drop", "tx", "redirect"),
                                              short | {9000}))  # fmt: skip

    def test_c_has_no_module_to_count(self) -> None:
        drivers = {cell["case"]: cell["drivers"] for cell in xdp.cells()}
        both = sorted(drivers["drop 60"])
        self.assertEqual((both, sorted(drivers["none 9000"])), (["c", "rust"], both))
        self.assertEqual((drivers["router 60"], drivers["drop 9000"]), (["rust"], ["rust"]))

    def test_the_user_of_a_socket_has_no_time(self) -> None:
        plans = [cells for one in (xdp.COUNTED, xdp.TIMED) for _, cells in one.plans("xsk, drop")]
        self.assertEqual(["xsk 2048, 60" in [cell["case"] for cell in cells] for cells in plans],
                         [True, False])  # fmt: skip


class Times(unittest.TestCase):
    """From lines of the guest to processor time per frame."""

    def lines(self, case: str, cost: float, interrupts: float) -> list[str]:
        return [json.dumps({"case": case, "driver": driver, "pair": pair, "cost": cost * times,
                            "interrupts": interrupts})
                for driver, times in (("rust", 1), ("c", 2)) for pair in (1, 2)]  # fmt: skip

    def test_interrupts_are_apart(self) -> None:
        measured = {"none 60": (300, 0.01), "none 60, window 1": (2280, 1),
                    "drop 60": (50, 0.005), "drop 60, window 9": (3000, 1)}  # fmt: skip
        lines = [line for case, figures in measured.items() for line in self.lines(case, *figures)]
        rows = {(row.bench, row.case): row for row in xdp.times(lines)}
        interrupt = rows["xdp-cost", "an interrupt"]
        self.assertEqual((interrupt.ours, interrupt.reference), (2000, 4000))
        drop = rows["xdp-cost", "drop 60 path"]
        self.assertEqual((drop.ours, drop.reference, drop.ratio), (40, 80, 2))
        self.assertEqual(rows["xdp-events", "drop 60 interrupts"].ours, 5)
        self.assertNotIn(("xdp-cost", "drop 60, window 9 path"), rows)

    def test_without_that_of_an_interrupt_there_is_no_time(self) -> None:
        rows = xdp.times(self.lines("drop 60", 50, 0.005))
        self.assertEqual([row.bench for row in rows], ["xdp-events", "xdp-cost"])
        self.assertEqual((rows[1].case, rows[1].ours), ("an interrupt", None))
