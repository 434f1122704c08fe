# SPDX-License-Identifier: GPL-2.0
"""Rows, ratios and targets of make bench."""

from __future__ import annotations

import unittest

from testbed.bench.plots import curves
from testbed.bench.rows import met, parse, target
from testbed.bench.summary import lines
from testbed.host.ui import Failure

LOG = """round 1
bulk_bench: slab|bulk 8|ours|4000|ps
bulk_bench: slab|bulk 8|reference|4800|ps
round 2
bulk_bench: slab|bulk 8|ours|5000|ps
bulk_bench: slab|bulk 8|reference|5000|ps
round 3
bulk_bench: slab|bulk 8|ours|4000|ps
bulk_bench: slab|bulk 8|reference|3600|ps
bulk_bench: slab|at rest|ours|65536|bytes
"""


class Rows(unittest.TestCase):
    """Rows from the modules' lines."""

    def test_the_ratio_is_the_median_of_pairs_of_one_round(self) -> None:
        row = parse(LOG.splitlines())[0]
        self.assertEqual((row.bench, row.case, row.unit), ("slab", "bulk 8", "ns"))
        self.assertEqual(row.ratios, (1.2, 1.0, 0.9))
        self.assertEqual(row.ratio, 1.0)
        self.assertEqual((row.ours, row.reference), (4.0, 4.8))

    def test_a_round_without_its_counterpart_does_not_count(self) -> None:
        lines = ["round 1", "bulk_bench: alf_queue|spsc 4|ours|10|ps",
                 "round 2", "bulk_bench: alf_queue|spsc 4|ours|10|ps",
                 "bulk_bench: alf_queue|spsc 4|reference|30|ps"]  # fmt: skip
        self.assertEqual(parse(lines)[0].ratios, (3.0,))

    def test_a_figure_that_is_no_time_has_no_ratio(self) -> None:
        row = parse(LOG.splitlines())[1]
        self.assertEqual(
            (row.case, row.unit, row.ours, row.ratio), ("at rest", "bytes", 65536, None)
        )

    def test_doorbells_are_a_row_with_a_target(self) -> None:
        case = "xmit-ring|2 senders one ring doorbells"
        row = parse(["round 1", f"bulk_bench: {case}|ours|50|doorbells",
                     f"bulk_bench: {case}|reference|1000|doorbells"])[0]  # fmt: skip
        self.assertEqual((row.ours, row.reference, row.ratio), (50, 1000, 20.0))
        self.assertTrue(met(row))

    def test_a_reference_alone_is_an_error_that_names_the_case(self) -> None:
        with self.assertRaisesRegex(Failure, "slab, case bulk 1"):
            parse(["round 1", "bulk_bench: slab|bulk 1|reference|5|ps"])

    def test_a_benchmark_of_the_reference_alone_is_shown(self) -> None:
        rows = parse(["round 1", "bulk_bench: alf_queue-unlocked|spsc 2|reference|5000|ps"])
        self.assertEqual((rows[0].ours, rows[0].reference, rows[0].ratio), (None, 5.0, None))
        self.assertIn("5.00", "\n".join(lines(rows, lambda _: True)))

    def test_the_record_has_the_fields_that_scripts_read(self) -> None:
        record = parse(LOG.splitlines())[0].record()
        self.assertEqual(record["reference_name"], "kmem_cache_*_bulk")
        self.assertEqual((record["ratio"], record["ratio_min"], record["rounds"]), (1.0, 0.9, 3))

    def test_the_table_says_what_was_missed(self) -> None:
        log = LOG.replace("slab|bulk 8", "alf_queue|bulk 8").splitlines()
        self.assertIn("  below 2", "\n".join(lines(parse(log))))
        self.assertNotIn("below", "\n".join(lines(parse(LOG.splitlines()))))
        self.assertFalse(met(parse(log)[0]))

    def test_rows_that_results_leaves_out_are_printed(self) -> None:
        rows = parse(LOG.splitlines())
        self.assertEqual((len(lines(rows)), len(lines(rows, lambda _: True))), (2, 3))

    def test_targets(self) -> None:
        for bench, case, wanted in (
            ("slab", "bulk 16", 0.95),
            ("slab", "bulk 30", 0.97),
            ("slab-sized", "bulk 30", 0.97),
            ("window", "window 32 1 cpu", 1.0),
            ("window", "window 48 1 cpu", None),
            ("window", "window 4096 1 cpu shared tails", 1.25),
            ("window-cost", "window 32 1 cpu", None),
            ("slab-loop", "bulk 2", 1.3),
            ("slab-loop", "bulk 4", None),
            ("alf_queue", "spsc 4", None),
            ("alf_queue", "mpmc 8", 2.0),
            ("qmempool", "process", None),
            ("qmempool-xcpu", "batch 1", 2.0),
        ):
            self.assertEqual(target(bench, case), wanted, f"{bench} {case}")

    def test_curves_need_two_points(self) -> None:
        lines = LOG.splitlines()
        self.assertEqual(curves(parse(lines)), {"slab": {}})
        lines += ["round 1", "bulk_bench: slab|bulk 16|ours|3000|ps"]
        self.assertEqual([size for size, _ in curves(parse(lines))["slab"]["bulk"]], [8, 16])

    def test_the_number_of_a_window_is_in_the_middle(self) -> None:
        lines = [f"bulk_bench: window|window {size} 1 cpu|ours|9000|ps" for size in (8, 16)]
        found = curves(parse([*lines, *(line.replace("ours", "reference") for line in lines)]))
        self.assertEqual([size for size, _ in found["window"]["1 cpu"]], [8, 16])
