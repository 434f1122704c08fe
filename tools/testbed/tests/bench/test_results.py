# SPDX-License-Identifier: GPL-2.0
"""The demo's arithmetic and its table."""

from __future__ import annotations

import unittest
from typing import Any

from testbed.bench.results import (
    Round,
    bulk_difference,
    combine,
    mean_bulk,
    problems,
    ratios,
    table,
)

ETHTOOL = "NIC statistics:\n     rx_packets: 9\n     bulk_free_1: 2\n     bulk_free_16_31: 5\n"


def answer(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "ok": True,
        "sent": 1000,
        "forwarded": 990,
        "lost": {"no_rx_descriptor": 10, "in_guest": 0},
        "duplicated": 0,
        "damaged": 0,
        "damage": {"ttl": 0},
        "reordered": 0,
        "seconds": 0.5,
        "pps": 1980.0,
    }
    return {**plain, **changes}


class ResultsTest(unittest.TestCase):
    def test_rounds_add_up(self) -> None:
        record = combine([Round("c", answer(), {"1": 3}), Round("c", answer(), {"1": 4, "64": 1})])
        self.assertEqual((record["sent"], record["forwarded"]), (2000, 1980))
        self.assertEqual(record["lost"]["no_rx_descriptor"], 20)
        self.assertEqual(record["lost"]["filtered"], 0)
        self.assertEqual(record["pps"], 1980)
        self.assertEqual(record["bulk_free_histogram"], {"1": 7, "64": 1})
        self.assertIsNone(record["instructions_per_packet"])

    def test_interrupts_are_those_of_a_packet(self) -> None:
        rounds = [Round("c", answer(), {}, 90), Round("c", answer(), {}, 108)]
        self.assertEqual(combine(rounds)["interrupts_per_packet"], 0.1)
        self.assertIsNone(combine([Round("c", answer())])["interrupts_per_packet"])
        nothing = Round("c", answer(forwarded=0), {}, 1)
        self.assertIsNone(combine([nothing])["interrupts_per_packet"])

    def test_a_round_without_time_has_no_rate(self) -> None:
        self.assertIsNone(combine([Round("c", answer(seconds=0, forwarded=0))])["pps"])

    def test_the_histogram_is_what_the_round_added(self) -> None:
        before = ETHTOOL.replace("16_31: 5", "16_31: 1")
        self.assertEqual(bulk_difference(before, ETHTOOL), {"16-31": 4})
        self.assertEqual(bulk_difference("", ETHTOOL), {"1": 2, "16-31": 5})
        self.assertEqual(bulk_difference("", "no statistics"), {})

    def test_mean_of_a_histogram(self) -> None:
        self.assertEqual(mean_bulk({"1": 1, "16-31": 1}), 8.5)
        self.assertIsNone(mean_bulk({}))

    def test_ratios_need_both_drivers(self) -> None:
        rust = {"pps": 300, "instructions_per_packet": 90.0}
        c = {"pps": 200, "instructions_per_packet": 100.0}
        both = ratios({"rust": rust, "c": c})
        self.assertEqual((both["pps"], both["instructions_per_packet"]), (1.5, 0.9))
        self.assertIsNone(both["driver_instructions_per_packet"])
        self.assertEqual(set(ratios({"c": c}).values()), {None})

    def test_problems_are_named(self) -> None:
        good = combine([Round("c", answer(forwarded=1000, lost={}))])
        self.assertEqual(problems("c", good, 1000), [])
        bad = combine([Round("c", answer(damaged=1, lost={"in_guest": 10}))])
        text = " ".join(problems("c", bad, 1000))
        for part in ("990 of 1,000", "1 frames were damaged", "10 frames were lost in the guest"):
            self.assertIn(part, text)

    def test_the_table_lines_up(self) -> None:
        drivers = {
            "rust": combine([Round("rust", answer(), {"16-31": 40})]),
            "c": combine([Round("c", answer(), {"1": 990})]),
        }
        lines = table(drivers, ratios(drivers))
        self.assertTrue(lines[0].rstrip().endswith("Rust/C"))
        self.assertTrue(lines[2].startswith("instructions/packet"))
        for start in (
            "frames in",
            "lost  ",
            "  no rx descriptor",
            "packets/s",
            "frees of 16-31 SKBs",
        ):
            self.assertTrue(any(line.startswith(start) for line in lines), start)
        self.assertFalse(any("filtered" in line for line in lines))
