# SPDX-License-Identifier: GPL-2.0
"""The cases of make bench ONLY=tcp, and their rows."""

from __future__ import annotations

import json
import unittest

from testbed.bench import in_turn, summary
from testbed.bench.forward import FORWARD
from testbed.bench.rows import Row, met, target
from testbed.bench.tcp import BENCH, COST, EVENTS, MACHINES, OFF, SHORT, TCP, cells, parse
from testbed.host.ui import Failure

CASES = cells(MACHINES[0])


def table(rows: list[Row]) -> str:
    """All rows as make bench prints them."""
    return "\n".join(summary.lines(rows, lambda _: True))


def one(driver: str, pair: int, mbits: float, **more: object) -> str:
    known = {"case": "1 flow", "driver": driver, "pair": pair, "mbits": mbits, "cost": 2000.0,
             "retransmitted": 0.0, "rx_no_descriptor": 0.0, "interrupts": 20.0}  # fmt: skip
    return json.dumps(known | more)


class Rows(unittest.TestCase):
    """Rows from the guest's lines."""

    def found(self, *lines: str) -> dict[tuple[str, str], Row]:
        return {(row.bench, row.case): row for row in parse(lines)}

    def test_a_higher_rate_is_better_and_a_higher_cost_is_not(self) -> None:
        rows = self.found(one("rust", 1, 3000.0), one("c", 1, 2000.0, cost=3000.0),
                          one("c", 2, 2500.0, cost=4000.0), one("rust", 2, 2000.0),
                          one("c", 3, 9000.0))  # fmt: skip
        rate, cost = rows[BENCH, "1 flow"], rows[COST, "1 flow"]
        self.assertEqual((rate.unit, rate.ours, rate.reference), ("Mbit/s", 2500.0, 2500.0))
        self.assertEqual(rate.ratios, (1.5, 0.8))
        self.assertEqual((cost.unit, cost.ratios), ("ns", (1.5, 2.0)))
        self.assertEqual(rate.record()["reference_name"], "the C driver")

    def test_events_are_means_of_rounds_without_a_ratio(self) -> None:
        rows = self.found(one("rust", 1, 1.0, interrupts=5.0), one("c", 1, 1.0, retransmitted=3.0),
                          one("rust", 2, 1.0, interrupts=6.0), one("c", 2, 1.0))  # fmt: skip
        again, interrupts = (rows[EVENTS, f"1 flow {name}"]
                             for name in ("retransmitted", "interrupts"))  # fmt: skip
        self.assertEqual((again.ours, again.reference, again.ratio), (0.0, 1.5, None))
        self.assertEqual((interrupts.ours, interrupts.reference), (5.5, 20.0))
        self.assertRegex(table([again]), r"1 flow retransmitted +0\.00 +1\.50 +per MiB")

    def test_one_driver_alone_has_no_ratio(self) -> None:
        rows = self.found(one("c", 1, 2000.0))
        self.assertEqual((rows[BENCH, "1 flow"].ours, rows[BENCH, "1 flow"].ratio), (None, None))
        self.assertEqual(rows[EVENTS, "1 flow interrupts"].ours, None)
        self.assertRegex(table([rows[BENCH, "1 flow"]]), r"1 flow +- +2,000")

    def test_a_case_that_failed_is_no_row(self) -> None:
        failed = json.dumps({"case": "4 flows", "failed": "no progress for 10 s", "pair": 2})
        lines = [one("rust", 1, 1.0), failed, one("c", 1, 1.0)]
        self.assertEqual({row.case for row in parse(lines) if row.bench == BENCH}, {"1 flow"})
        [reason] = in_turn.failures(lines)
        for part in ("4 flows", "no progress for 10 s", "pair 2"):
            self.assertIn(part, reason)

    def test_the_table_has_the_unit_and_the_target(self) -> None:
        rows = self.found(one("rust", 1, 2100.0), one("c", 1, 2000.0))
        text = table([rows[BENCH, "1 flow"]])
        self.assertIn("tcp: ours against the C driver, Mbit/s", text)
        self.assertRegex(text, r"1 flow +2,100 +2,000 +1\.05 .*  below 1\.1$")
        self.assertFalse(met(rows[BENCH, "1 flow"]))
        self.assertNotIn("Mbit/s", table([rows[COST, "1 flow"]]))


class Cases(unittest.TestCase):
    """The cases, and their selection."""

    def test_a_case_has_one_name(self) -> None:
        names = [cell["case"] for cell in CASES]
        self.assertEqual(len(names), len(set(names)))

    def test_the_rows_of_the_issue_are_there(self) -> None:
        names = {cell["case"] for cell in CASES}
        for flows in ("1 flow", "4 flows", "16 flows", "window 16 KiB"):
            for end in ("", " reverse", " TSO off", " reverse TSO off"):
                self.assertIn(flows + end, names)
        for name in ("window 4 MiB", "delay 2 ms"):
            self.assertLessEqual({name, f"{name} TSO off"}, names)
        for name in ("writes 128 bytes", "writes 128 bytes no delay", "UDP USO"):
            self.assertLessEqual({name, f"{name} reverse"}, names)

    def test_the_name_says_what_the_guest_does(self) -> None:
        for cell in CASES:
            name = cell["case"]
            self.assertEqual(cell["segmentation"], not name.endswith(OFF), name)
            self.assertEqual(cell["reverse"], "reverse" in name, name)
            self.assertEqual(cell.get("nodelay", False), "no delay" in name, name)
            self.assertEqual(cell["flows"], int(name.split()[0]) if "flow" in name else 1, name)
            self.assertEqual(cell["kind"], "udp" if "UDP" in name else "tcp", name)

    def test_a_switch_of_the_offloads_comes_once(self) -> None:
        states = [cell["segmentation"] for cell in CASES]
        self.assertEqual(states, sorted(states, reverse=True))

    def test_the_target_is_lower_without_segmentation_by_the_card(self) -> None:
        for cell in CASES:
            wanted = 1.0 if cell["case"].endswith("TSO off") else 1.1
            self.assertEqual(target(BENCH, cell["case"]), wanted, cell["case"])
        self.assertIsNone(target(COST, "1 flow"))

    def test_words_choose_cases(self) -> None:
        [(_, wanted)] = TCP.plans("no delay, UDP")
        self.assertEqual(len(wanted), 4)
        [(_, every)] = TCP.plans("")
        self.assertEqual(every, CASES)

    def test_a_word_that_one_benchmark_knows_is_good_for_both(self) -> None:
        in_turn.check([FORWARD, TCP], "latency")
        self.assertEqual(TCP.plans("latency"), [])
        with self.assertRaises(Failure) as caught:
            in_turn.check([TCP], "latency")
        self.assertIn("CASES=latency", str(caught.exception))
        self.assertEqual(set(caught.exception.hints[1:]), {cell["case"] for cell in CASES})

    def test_the_short_cases_are_the_same_with_less_to_send(self) -> None:
        short = SHORT.cells(MACHINES[0])
        self.assertEqual([cell["case"] for cell in short], [cell["case"] for cell in CASES])
        for few, many in zip(short, CASES, strict=True):
            self.assertLess(few["bytes"], many["bytes"] // 10)
            self.assertEqual(few | {"bytes": 0}, many | {"bytes": 0})
