# SPDX-License-Identifier: GPL-2.0
"""The simulation of transmission: its parts, and the results of simple cases."""

from __future__ import annotations

import json
import re
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from testbed.host.ui import Failure
from txsim import calibrate, saturation, seed
from txsim.costs import SEED, Costs
from txsim.designs import BATCH, COMBINER, DESIGNS, LLIST, LOCK, RING, RING_LOCK, Design
from txsim.engine import Cpu, Engine, Line, Lock
from txsim.fit import solve
from txsim.simulate import Outcome, bucket, simulate

PACKETS = 1_500

# All costs differ, so that none can be mistaken for another.
COSTS = Costs(
    transfer=100.0,
    atomic=7.0,
    think=50.0,
    lock=11.0,
    listed=3.0,
    call=20.0,
    packet=40.0,
    doorbell=90.0,
    handoff_lines=2.0,
    busylock_lines=1.0,
    state_lines=3.0,
    packet_lines=2.0,
)


def few(design: Design, senders: int, costs: Costs = COSTS) -> Outcome:
    return simulate(design, senders, costs, PACKETS)


class Parts(unittest.TestCase):
    """Lines and locks."""

    def test_a_line_costs_who_has_it_less_than_others(self) -> None:
        engine = Engine()
        line = Line(engine, 100.0, 7.0)
        self.assertEqual(line.fetch(1), 107.0)
        engine.now = 200.0
        self.assertEqual(line.fetch(1), 7.0)

    def test_who_wants_a_line_at_the_same_time_gets_it_one_after_the_other(self) -> None:
        line = Line(Engine(), 100.0, 7.0)
        self.assertEqual([line.fetch(cpu) for cpu in (1, 2, 3)], [107.0, 214.0, 321.0])
        self.assertEqual(line.busy, 321.0)

    def test_a_lock_serves_in_order_of_arrival_and_excludes(self) -> None:
        engine = Engine()
        lock = Lock(engine, 1.0, 5.0)
        seen: list[tuple[str, int, float]] = []

        def holder(me: int) -> Cpu:
            yield from lock.acquire(me)
            seen.append(("in", me, engine.now))
            yield 50.0
            seen.append(("out", me, engine.now))
            lock.release()
            yield None

        for me in range(3):
            engine.wake(holder(me), me * 2.0)
        engine.run()
        self.assertEqual([me for _, me, _ in seen], [0, 0, 1, 1, 2, 2])
        self.assertEqual([now for what, _, now in seen if what == "in"], [1.0, 56.0, 111.0])
        self.assertEqual((lock.contended, lock.busy), (2, 160.0))

    def test_histograms_count_powers_of_two(self) -> None:
        self.assertEqual([bucket(one) for one in (0.5, 1, 3.9, 4, 1023, 1024)],
                         [1, 1, 2, 4, 512, 1024])  # fmt: skip


class OneQueue(unittest.TestCase):
    """Rates that are known without a simulation."""

    def test_one_sender_takes_what_its_steps_take(self) -> None:
        alone = COSTS.think + COSTS.call + COSTS.packet + COSTS.lock
        listing = COSTS.listed + 2 * COSTS.atomic
        # The combiner looks once more, and finds nothing.
        for design, wanted in ((LOCK, alone), (LLIST, alone + listing),
                               (COMBINER, alone + listing + COSTS.atomic),
                               (RING_LOCK, alone + COSTS.doorbell)):  # fmt: skip
            self.assertAlmostEqual(few(design, 1).ns / wanted, 1.0, delta=0.02, msg=design.name)

    def test_under_contention_a_lock_is_passed_on_with_each_packet(self) -> None:
        lines = COSTS.handoff_lines + COSTS.busylock_lines + COSTS.state_lines
        wanted = COSTS.lock + COSTS.call + COSTS.packet + lines * COSTS.transfer
        for senders in (4, 64):
            outcome = few(LOCK, senders)
            self.assertAlmostEqual(outcome.ns / wanted, 1.0, delta=0.01)
            self.assertGreater(outcome.contended, 0.99)
        # Only the first design has the second lock.
        without = wanted - COSTS.busylock_lines * COSTS.transfer + COSTS.doorbell
        self.assertAlmostEqual(few(RING_LOCK, 8).ns / without, 1.0, delta=0.01)

    def test_a_list_leaves_the_lines_of_packets_and_the_work(self) -> None:
        wanted = COSTS.call + COSTS.packet + COSTS.packet_lines * COSTS.transfer
        for design in (LLIST, COMBINER):
            outcome = few(design, 8)
            self.assertAlmostEqual(outcome.ns / wanted, 1.0, delta=0.03, msg=design.name)
            self.assertGreater(max(outcome.batches), 16)
        self.assertAlmostEqual(few(BATCH, 8).ns / (wanted - COSTS.call), 1.0, delta=0.03)

    def test_a_batch_rings_once(self) -> None:
        self.assertEqual(few(RING_LOCK, 8).doorbells, 1.0)
        self.assertLess(few(RING, 8).doorbells, 0.05)
        self.assertEqual(few(RING, 1).doorbells, 1.0)
        self.assertEqual(few(BATCH, 8).doorbells, 0.0)

    def test_nobody_gets_further_than_the_window(self) -> None:
        outcome = few(COMBINER, 8, replace(COSTS, window=4, packet=2000.0))
        self.assertLessEqual(max(outcome.batches), 8 * 4)
        self.assertEqual(outcome.dropped, 0.0)

    def test_what_exceeds_the_limit_is_dropped_and_counted(self) -> None:
        outcome = few(COMBINER, 8, replace(COSTS, limit=16, packet=2000.0))
        self.assertLessEqual(max(outcome.batches), 16)
        self.assertGreater(outcome.dropped, 0.5)

    def test_a_run_in_which_nearly_all_is_dropped_ends(self) -> None:
        outcome = few(COMBINER, 64, replace(COSTS, limit=1, packet=1e6, think=1.0, atomic=0.1,
                                            transfer=1.0))  # fmt: skip
        self.assertGreater(outcome.dropped, 20.0)
        self.assertGreater(outcome.ns, 1e4)

    def test_a_combiner_hands_over_when_it_is_bound_to(self) -> None:
        costs = replace(COSTS, bound=2, window=8)
        self.assertGreater(few(COMBINER, 8, costs).contended, 0.01)
        self.assertLess(few(COMBINER, 8, replace(costs, bound=10**6)).contended, 0.002)

    def test_the_same_run_gives_the_same(self) -> None:
        for design in DESIGNS:
            self.assertEqual(few(design, 5), few(design, 5))

    def test_no_sender_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "0 senders"):
            few(LOCK, 0)


class Saturated(unittest.TestCase):
    """Descriptions of the end of a curve."""

    def test_the_parts_of_a_busy_lock_add_up_to_the_packet(self) -> None:
        for design in DESIGNS:
            outcome = few(design, 8)
            self.assertAlmostEqual(sum(saturation.parts(outcome).values()) / outcome.ns, 1.0,
                                   delta=0.02, msg=design.name)  # fmt: skip

    def test_a_busy_lock_and_idle_senders_are_told_apart(self) -> None:
        self.assertEqual(saturation.full(few(LOCK, 8)), (saturation.LOCK,))
        slow = replace(COSTS, think=50_000.0)
        self.assertEqual(saturation.full(few(LOCK, 2, slow)), (saturation.SENDERS,))

    def test_the_head_is_busy_where_packets_are_dropped(self) -> None:
        outcome = few(COMBINER, 64, replace(COSTS, limit=16))
        self.assertIn(saturation.HEAD, saturation.full(outcome))

    def test_a_spinlock_is_at_its_top_alone(self) -> None:
        _, line = saturation.table({LOCK: [few(LOCK, senders) for senders in (1, 2, 16)]})
        found = re.match(r"spinlock +(\S+) +1 +(\S+) +0%  the lock +the lock itself, ", line)
        assert found, line
        self.assertLess(float(found[2]), float(found[1]) / 3)


class Fits(unittest.TestCase):
    """Costs from measurements."""

    def test_solving_finds_bent_lines_and_stays_in_between(self) -> None:
        self.assertAlmostEqual(solve(lambda x: x * x + 1, 10.0, 0.0, 30.0), 3.0, delta=0.01)
        self.assertEqual(solve(lambda x: x, -5.0, 1.0, 2.0), 1.0)
        self.assertEqual(solve(lambda x: x, 7.0, 1.0, 2.0), 2.0)

    def figures(self, costs: Costs) -> dict[tuple[str, int], float]:
        return {(design.name, senders): simulate(design, senders, costs, 3_000).ns
                for design in DESIGNS for senders in (1, 2)}  # fmt: skip

    def test_what_was_simulated_is_found_again(self) -> None:
        costs = Costs(state_lines=1.5, packet_lines=1.2, lock=9.0, atomic=12.0, listed=6.0)
        figures = self.figures(costs)
        found = calibrate.calibrate(vars(costs), figures)
        self.assertAlmostEqual(found.lock, 9.0, delta=1.5)
        self.assertAlmostEqual(found.state_lines, 1.5, delta=0.2)
        self.assertAlmostEqual(found.packet_lines, 1.2, delta=0.2)
        for design, _, measured, predicted in calibrate.predictions(found, figures):
            close = 0.03 if design in calibrate.USED else 0.1
            self.assertAlmostEqual(predicted / measured, 1.0, delta=close)

    def file(self, text: str) -> Path:
        path = Path(self.enterContext(tempfile.TemporaryDirectory())) / "xmit.json"
        path.write_text(text)
        return path

    def test_figures_are_read_from_the_file_of_the_benchmark(self) -> None:
        content = {"parameters": {"transfer": 30},
                   "figures": [{"design": design, "senders": senders, "ns": 9}
                               for design in ("lock", "llist") for senders in (1, 2)]}  # fmt: skip
        parameters, figures = calibrate.read(self.file(json.dumps(content)))
        self.assertEqual((parameters["transfer"], figures["llist", 2]), (30.0, 9.0))

    def test_a_file_that_lacks_something_is_named_with_what_it_lacks(self) -> None:
        with self.assertRaisesRegex(Failure, "lock with 1 senders"):
            calibrate.read(self.file('{"parameters": {}, "figures": []}'))
        for text in ("{", "[]", '{"figures": 1}', '{"parameters": 1, "figures": []}'):
            with self.assertRaisesRegex(Failure, "is not a result of make bench"):
                calibrate.read(self.file(text))


class Seed(unittest.TestCase):
    """Against the figures that came with the kernel's list."""

    def test_the_rates_after_are_predicted_from_those_before(self) -> None:
        checks = seed.check()
        self.assertEqual([one.after for one in checks], [29e6, 57e6])
        for one in checks:
            self.assertLess(abs(one.error), 0.05, one)
        # Lines of pinned threads are nearer.
        self.assertGreater(checks[0].transfer, 2 * checks[1].transfer)
        self.assertIn("29.0", "\n".join(seed.table(checks)))

    def test_a_wrong_estimate_is_told_with_what_it_does(self) -> None:
        lines = seed.sensitivity_table([("packet -25%", seed.check())])
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[1], r"^packet -25% +[+-]\d+% +[+-]\d+%$")

    def test_queues_that_get_more_senders_are_counted_as_such(self) -> None:
        one, two = (simulate(LOCK, senders, SEED, 3_000).pps for senders in (1, 2))
        self.assertAlmostEqual(seed.rate(LOCK, SEED, 3), 3 * one)
        self.assertAlmostEqual(seed.rate(LOCK, SEED, 31), 29 * one + two)
