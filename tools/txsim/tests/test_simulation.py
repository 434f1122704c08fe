# SPDX-License-Identifier: GPL-2.0
"""The simulation of transmission: its parts, the fit, and the prediction that is recorded."""

from __future__ import annotations

import json
import unittest
from dataclasses import replace
from pathlib import Path

from testbed.bench.rows import Row
from txsim import prediction
from txsim.engine import Cpu, Engine, Lock
from txsim.fit import Costs, Figures, UnidentifiedError
from txsim.simulate import simulate

RECORDS = Path(__file__).resolve().parents[2] / "testbed/record/results"
# All figures differ, so that none can be mistaken for another.
FIGURES = Figures((50.0, 300.0), (53.0, 250.0), 150.0, (1.5, 2.5))
COSTS = Costs.fit(FIGURES)


def recorded() -> list[Row]:
    return [Row.from_record(one) for one in json.loads((RECORDS / "xmit.json").read_text())["rows"]]


class Locks(unittest.TestCase):
    """The lock of simulated CPUs."""

    def test_a_lock_serves_in_order_of_arrival_and_excludes(self) -> None:
        engine = Engine()
        lock = Lock(engine)
        seen: list[tuple[str, int, float]] = []

        def holder(me: int) -> Cpu:
            yield from lock.acquire()
            seen.append(("in", me, engine.now))
            yield 50.0
            seen.append(("out", me, engine.now))
            lock.release()
            yield None

        for me in range(3):
            engine.wake(holder(me), me * 2.0)
        engine.run()
        self.assertEqual([me for _, me, _ in seen], [0, 0, 1, 1, 2, 2])
        self.assertEqual([now for event, _, now in seen if event == "in"], [0.0, 50.0, 100.0])


class OneQueue(unittest.TestCase):
    """Rates that are known without a simulation."""

    def close(self, wanted: float, senders: int, *, listed: bool, costs: Costs = COSTS) -> None:
        """Whatever is not identified must not matter."""
        for share in (0.0, 0.5, 1.0):
            ns = simulate(costs, senders, share=share, listed=listed)
            self.assertAlmostEqual(ns / wanted, 1.0, delta=0.02, msg=(senders, listed, share))

    def test_figures_that_were_fitted_are_reproduced(self) -> None:
        for senders in (1, 2):
            self.close(FIGURES.spinlock[senders - 1], senders, listed=False)
            self.close(FIGURES.llist[senders - 1], senders, listed=True)

    def test_a_lock_is_passed_on_with_each_packet_of_any_number_of_senders(self) -> None:
        for senders in (3, 16):
            self.close(COSTS.moved, senders, listed=False)

    def test_a_list_that_never_runs_empty_keeps_the_lock(self) -> None:
        for senders in (3, 16):
            self.close(COSTS.foreign, senders, listed=True)

    def test_own_work_of_many_senders_is_done_at_the_same_time(self) -> None:
        slow = replace(COSTS, alone=10_000.0, moved=10.0, foreign=10.0)
        ns = [simulate(slow, senders, share=1.0, listed=False) for senders in (1, 8)]
        self.assertAlmostEqual(ns[0] / ns[1], 8.0, delta=0.3)

    def test_no_sender_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "0 senders"):
            simulate(COSTS, 0, share=0.5, listed=False)


class Fits(unittest.TestCase):
    """Costs from the rows of the benchmark."""

    def test_each_cost_comes_from_its_figure(self) -> None:
        self.assertEqual((COSTS.alone, COSTS.listing, COSTS.moved), (50.0, 3.0, 300.0))
        # Of 64 packets, one pays for the lock; with two senders of a list, one of a batch.
        self.assertAlmostEqual((COSTS.moved + 63 * COSTS.foreign) / 64, 150.0)
        batch = COSTS.moved + (COSTS.batch - 1) * COSTS.foreign
        self.assertAlmostEqual(batch / COSTS.batch, 250.0)

    def test_figures_are_read_from_the_rows(self) -> None:
        rows = [
            Row("xmit-lock", "1 sender llist", "ns", 53.0, 50.0, (0.9,)),
            Row("xmit-lock", "2 senders llist", "ns", 250.0, 300.0, (1.0, 1.2, 1.3)),
            Row("xmit", "2 senders", "ns", 150.0, 250.0, (1.6, 1.5, 2.0)),
        ]
        self.assertEqual(Figures.of(rows), replace(FIGURES, spread=(1.5, 2.6)))
        with self.assertRaisesRegex(UnidentifiedError, "no row .*2 senders llist"):
            Figures.of([rows[0], rows[2]])
        with self.assertRaisesRegex(UnidentifiedError, "has no time"):
            Figures.of([*rows[:2], replace(rows[2], ours=None)])

    def test_figures_that_do_not_identify_the_costs_are_an_error(self) -> None:
        for figures in (
            # A list slower than the lock; batches of any length; two senders do not fill the lock.
            replace(FIGURES, llist=(53.0, 301.0)),
            replace(FIGURES, combiner=251.0),
            replace(FIGURES, spinlock=(200.0, 300.0)),
        ):
            with self.assertRaisesRegex(UnidentifiedError, "rising order"):
                Costs.fit(figures)


class Predictions(unittest.TestCase):
    """The tables."""

    def test_the_recorded_prediction_is_that_of_the_recorded_figures(self) -> None:
        content = json.loads((RECORDS / "xmit-sim.json").read_text())
        self.assertEqual(content["lines"], prediction.lines(recorded()))

    def test_errors_are_relative_to_what_was_published(self) -> None:
        rates = prediction.Rates(spinlock=1.0, llist=2.0, open=0.0)
        table = "\n".join(prediction.published(rates))
        self.assertRegex(table, r"not pinned: spinlock, Mpps +16\.0 +30\.0 +\+88%")
        self.assertRegex(table, r"\bpinned: gain +1\.39 +2\.00 +\+44%")

    def test_rows_that_are_missing_make_no_prediction(self) -> None:
        self.assertRegex("\n".join(prediction.lines([])), "^no prediction: there is no row")
