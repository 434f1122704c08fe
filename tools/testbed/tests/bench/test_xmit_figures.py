# SPDX-License-Identifier: GPL-2.0
"""Figures and rows from the lines of the module of make bench ONLY=xmit."""

from __future__ import annotations

import unittest
from collections import Counter

from testbed.bench.rows import met
from testbed.bench.xmit.figures import LABELS, Figures, parse, sentences
from testbed.bench.xmit.rounds import quantile
from testbed.host.ui import Failure


def a_round(number: int, times: dict[str, int], senders: int = 2) -> list[str]:
    """The lines of a round, with picoseconds by design."""
    lines = [f"round {number}"]
    for name, time in times.items():
        begin = f"rust_xmit_bench: {name}|{senders}"
        lines += [
            f"{begin}|ps|{time}",
            f"{begin}|doorbells|{5 if name == 'ring' else 100} 100",
            f"{begin}|batches| 0:10 4:2",
            f"{begin}|latencies| 7:98 12:2",
        ]
    return lines


class Lines(unittest.TestCase):
    """From lines to figures and rows."""

    def figures(self) -> Figures:
        first = {"lock": 200_000, "llist": 120_000, "combiner": 100_000, "batch": 80_000}
        second = {"lock": 180_000, "llist": 100_000, "combiner": 100_000, "batch": 100_000}
        rings = {"ring-lock": 300_000, "ring": 100_000}
        return parse([*a_round(1, {**first, **rings}), "noise",
                      *a_round(2, {**second, **rings})])  # fmt: skip

    def test_ratios_are_those_of_one_round(self) -> None:
        rows = {(row.bench, row.case): row for row in self.figures().rows()}
        self.assertEqual(rows["xmit", "2 senders"].ratios, (1.2, 1.0))
        self.assertEqual(rows["xmit", "2 senders batch enqueue"].ratios, (1.5, 1.0))
        self.assertEqual(rows["xmit-ring", "2 senders one ring"].ratio, 3.0)
        self.assertEqual(rows["xmit-lock", "2 senders batch enqueue"].ours, 90.0)

    def test_doorbells_are_a_row_with_a_target(self) -> None:
        rows = {row.case: row for row in self.figures().rows()}
        row = rows["2 senders one ring doorbells"]
        self.assertEqual((row.ours, row.reference, row.unit), (50.0, 1000.0, "per 1000"))
        self.assertTrue(met(row))

    def test_histograms_of_rounds_are_added(self) -> None:
        figure = self.figures().found["llist", 2]
        self.assertEqual(figure.histograms["batches"], Counter({0: 20, 4: 4}))
        self.assertEqual(figure.share("doorbells"), 1.0)

    def test_quantiles_are_powers_of_two_from_above(self) -> None:
        histogram = Counter({7: 98, 12: 2})
        self.assertEqual([quantile(histogram, share) for share in (0.5, 0.98, 0.99)],
                         [256, 256, 8192])  # fmt: skip
        self.assertEqual(quantile(Counter(), 0.5), 0)

    def test_every_design_is_told_with_its_rate(self) -> None:
        text = "\n".join(sentences(self.figures()))
        for label in LABELS.values():
            self.assertIn(label, text)
        self.assertIn("11.11", text, "the rate of 90 ns")

    def test_what_makes_no_sense_is_shown(self) -> None:
        for line in ("lock|two|ps|1", "lock|2|ps|fast", "lock|2|calls|1", "lock|2|batches| 1"):
            with self.assertRaisesRegex(Failure, "makes no sense: .*lock"):
                parse([f"rust_xmit_bench: {line}"])
        with self.assertRaisesRegex(Failure, "lock with 2 senders reported no time"):
            parse(["rust_xmit_bench: lock|2|calls|1 1"])
