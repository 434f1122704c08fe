# SPDX-License-Identifier: GPL-2.0
"""The cases of make bench ONLY=forward, and their rows."""

from __future__ import annotations

import json
import os
import tempfile
import unittest
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

from testbed.bench import forward, in_turn, summary
from testbed.bench.forward import BENCH, COST, FORWARD, MACHINES, SCALING, cells, parse
from testbed.bench.rows import Row, target
from testbed.boot.job import Job
from testbed.boot.uml import pins
from testbed.host.ui import Failure


def table(rows: list[Row]) -> str:
    """All rows as make bench prints them."""
    return "\n".join(summary.lines(rows, lambda _: True))


def lines(*records: dict[str, object]) -> list[str]:
    return [json.dumps(record) for record in records]


def one(driver: str, pair: int, ns: float, **more: object) -> dict[str, object]:
    return {"case": "1 flow 1 cpu", "driver": driver, "pair": pair, "ns": ns, **more}


class Rows(unittest.TestCase):
    """Rows from the guest's lines."""

    def test_rust_is_ours_and_ratios_are_those_of_pairs(self) -> None:
        [row] = parse(lines(one("c", 1, 1500.0), one("rust", 1, 1000.0),
                            one("rust", 2, 1000.0), one("c", 2, 1200.0),
                            one("rust", 3, 900.0)))  # fmt: skip
        self.assertEqual((row.bench, row.case, row.unit), (BENCH, "1 flow 1 cpu", "ns"))
        self.assertEqual((row.ours, row.reference), (1000.0, 1350.0))
        self.assertEqual(row.ratios, (1.5, 1.2))
        self.assertEqual(row.record()["reference_name"], "the C driver")

    def test_latency_makes_two_rows(self) -> None:
        record = {"case": "latency 1 cpu", "pair": 1, "median": 10, "p99": 40}
        rows = parse(lines({**record, "driver": "rust"}, {**record, "driver": "c", "p99": 50}))
        self.assertEqual([row.case for row in rows], ["latency 1 cpu median", "latency 1 cpu p99"])
        self.assertEqual([row.ratio for row in rows], [1.0, 1.25])

    def test_many_flows_are_compared_with_one_of_the_same_pair(self) -> None:
        records = []
        for driver, pair, alone, spread_out in (
            ("rust", 1, 1000.0, 1100.0), ("rust", 2, 1000.0, 1200.0),
            ("c", 1, 1000.0, 1650.0), ("c", 2, 2000.0, 2400.0), ("c", 3, 1000.0, 9000.0),
        ):  # fmt: skip
            for name, cost in (("1 flow", alone), ("64 flows", spread_out)):
                records.append({"case": f"{name} 2 queues 2 cpus", "driver": driver,
                                "pair": pair, "ns": 5.0, "cost": cost})  # fmt: skip
        rows = {(row.bench, row.case): row for row in parse(lines(*records))}
        self.assertEqual(rows[BENCH, "64 flows 2 queues 2 cpus"].ratios, (1.0, 1.0))
        self.assertEqual(rows[COST, "64 flows 2 queues 2 cpus"].ratios, (1.5, 2.0))
        scaling = rows[SCALING, "2 queues 2 cpus"]
        self.assertEqual((scaling.unit, scaling.ours), ("times", 1.15))
        self.assertEqual([round(one, 6) for one in scaling.ratios], [1.5, 1.0])
        self.assertEqual(target(SCALING, scaling.case), 1.0)

    def test_a_window_has_times_and_events(self) -> None:
        case = "window 32 1 cpu"
        events = {"lost": 0.0, "requeues": 0.002, "interrupts": 0.03}
        rows = parse(lines(
            {"case": case, "driver": "rust", "pair": 1, "ns": 500.0, "cost": 400.0, **events,
             "doorbells": 0.1},
            {"case": case, "driver": "c", "pair": 1, "ns": 1000.0, "cost": 600.0, **events,
             "lost": 0.5},
        ))  # fmt: skip
        found = {(row.bench, row.case): row for row in rows}
        self.assertEqual(found[forward.WINDOW, case].ratio, 2.0)
        self.assertEqual(found[forward.WINDOW_COST, case].ratio, 1.5)
        lost = found[forward.WINDOW_EVENTS, f"{case} lost"]
        self.assertEqual((lost.ours, lost.reference, lost.unit), (0.0, 500.0, "per 1000"))
        bells = found[forward.WINDOW_EVENTS, f"{case} doorbells"]
        self.assertEqual((bells.ours, bells.reference, bells.ratio), (100.0, None, None))
        self.assertIn("2.00", table([found[forward.WINDOW_EVENTS, f"{case} requeues"]]))

    def test_what_has_failed_is_told_and_leaves_the_others(self) -> None:
        failed = {"case": "drop 1 cpu", "failed": "frames got lost", "pair": 3}
        text = lines(one("c", 1, 1000.0), failed, one("rust", 1, 1000.0))
        self.assertEqual([row.case for row in parse(text)], ["1 flow 1 cpu"])
        [reason] = in_turn.failures(text)
        for part in ("drop 1 cpu", "frames got lost", "pair 3", "exit code"):
            self.assertIn(part, reason)

    def test_what_could_not_be_measured_is_no_row(self) -> None:
        self.assertEqual(parse(lines({"case": "x", "driver": "c", "missing": "no rate"})), [])

    def test_one_driver_alone_has_no_ratio(self) -> None:
        rows = parse(lines(one("c", 1, 1000.0)))
        self.assertEqual((rows[0].ours, rows[0].ratio), (None, None))
        self.assertIn("1000.00", table(rows))


class Plans(unittest.TestCase):
    """The cases, and their selection."""

    def test_a_case_has_one_name(self) -> None:
        names = [cell["case"] for machine in MACHINES for cell in cells(machine)]
        self.assertEqual(len(names), len(set(names)))

    def test_the_targets_are_those_of_cases(self) -> None:
        self.assertEqual(target(BENCH, "1 flow 1 cpu"), 1.25)
        self.assertEqual(target(BENCH, "1 flow 1 cpu shared tails"), 1.15)
        names = {cell["case"] for machine in MACHINES for cell in cells(machine)}
        self.assertLessEqual(
            {"1 flow 1 cpu", "1 flow 1 cpu shared tails", "64 flows 2 cpus",
             "64 flows 2 queues 2 cpus"}, names
        )  # fmt: skip

    def test_words_choose_cases_and_boots(self) -> None:
        chosen = FORWARD.plans("latency, loss-free 1 cpu shared")
        self.assertEqual([len(wanted) for _, wanted in chosen], [1, 2])
        self.assertEqual(len(FORWARD.plans("")), len(MACHINES))

    def test_an_unknown_word_lists_the_cases(self) -> None:
        with self.assertRaises(Failure) as caught:
            in_turn.check([FORWARD], "latenzy")
        self.assertIn("CASES=latenzy", str(caught.exception))
        self.assertIn("latency 1 cpu", caught.exception.hints)


class Runs(unittest.TestCase):
    """Guests that fail, and processors that are missing."""

    def measured(self, folder: Path, processors: int, failing: str) -> in_turn.Measured:
        def measure(*_: Any, cpus: int, shared_tails: bool, **__: Any) -> None:
            suffix = f"{cpus} cpus{' shared tails' if shared_tails else ''}"
            record = json.dumps(one("c", 1, 1000.0) | {"case": f"x {suffix}"})
            (folder / "results" / "forward.jsonl").write_text(record + "\n")
            if suffix == failing:
                raise Failure("no end after 900 s", "console: log")

        ready = mock.MagicMock()
        ready.env.out = folder
        ready.env.drivers = ["rust", "c"]
        ready.env.settings.text.return_value = ""
        (folder / "results").mkdir()
        with (
            mock.patch.object(in_turn.guest, "measure", measure),
            mock.patch.object(in_turn, "awake", lambda *_: nullcontext()),
            mock.patch.object(os, "sched_getaffinity", return_value=set(range(processors))),
        ):
            return in_turn.run(FORWARD, ready, 1)

    def test_a_guest_that_fails_keeps_its_rows_and_leaves_the_others(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = self.measured(Path(folder), 4, "1 cpus")
        self.assertEqual(len(found.rows), len(MACHINES))
        self.assertEqual(found.skipped, [])
        self.assertEqual(found.failed, ["forward-1-cpu: no end after 900 s | console: log"])

    def test_cases_that_need_more_processors_are_skipped_and_say_so(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = self.measured(Path(folder), 2, "")
        self.assertEqual(found.failed, [])
        self.assertEqual(len(found.rows), sum(not machine.queues for machine in MACHINES))
        self.assertIn("64 flows 2 queues 2 cpus: needs 3 processors, here are 2", found.skipped)


class Pins(unittest.TestCase):
    """The guest and the model share no processor if there are enough."""

    def pins(self, here: set[int], cpus: int, pinned: bool = True) -> tuple[list[str], list[str]]:
        with mock.patch.object(os, "sched_getaffinity", return_value=here):
            return pins(Job(Path("x"), "none", cpus=cpus, pinned=pinned))

    def test_each_has_its_own(self) -> None:
        self.assertEqual(self.pins({4, 1}, 1), (["taskset", "-c", "1"], ["taskset", "-c", "4"]))
        self.assertEqual(self.pins({0, 1, 2, 3}, 2)[1], ["taskset", "-c", "2,3"])

    def test_too_few_are_shared(self) -> None:
        self.assertEqual(self.pins({0, 1}, 2), ([], []))
        self.assertEqual(self.pins({0, 1}, 1, pinned=False), ([], []))
