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
        rows = {row.case: row for row in xdp.rows(LINES, WINDOWS)}
        driver, path = rows["drop 60 driver"], rows["drop 60 path"]
        self.assertEqual((driver.ours, driver.reference, driver.ratio), (100, 150, 1.5))
        self.assertEqual((path.ours, path.reference), (120, 200))

    def test_frames_that_went_wrong_are_no_figure(self) -> None:
        lines = [*LINES, line("c", "tx 60", wrong=1), line("c", "tx 60"), line("rust", "tx 60", 50)]
        windows = [*WINDOWS, window("ixgbe", 1, 1), window("ixgbe", 7000, 5000),
                   window("ixgbe_rust", 500, 1000)]  # fmt: skip
        rows = {row.case: row for row in xdp.rows(lines, windows)}
        self.assertEqual((rows["tx 60 driver"].ours, rows["tx 60 driver"].reference), (10, 70))

    def test_a_verdict_that_failed_has_no_window(self) -> None:
        failure = json.dumps({"driver": "c", "case": "redirect", "failed": "no ring"})
        self.assertEqual(len(xdp.rows([*LINES, failure], WINDOWS)), 2)
        self.assertIn("redirect: no ring", xdp.failed([*LINES, failure])[0])

    def test_a_window_that_is_missing_is_told(self) -> None:
        with self.assertRaises(Failure):
            xdp.rows(LINES, WINDOWS[:-1])

    def test_each_verdict_has_all_lengths(self) -> None:
        for group in (one for one in xdp.groups() if one.get("chunk") != 2048):
            sizes = {cell["size"] for cell in group["cells"]}
            self.assertEqual(sizes, {60, 128, 512, 1514})

    def test_c_has_no_module_to_count(self) -> None:
        drivers = {group["verdict"]: group["drivers"] for group in xdp.groups()}
        self.assertEqual((drivers["router"], drivers["drop"]), (["rust"], ["rust", "c"]))
