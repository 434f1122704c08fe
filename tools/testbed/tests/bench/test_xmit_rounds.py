# SPDX-License-Identifier: GPL-2.0
"""Queueing disciplines: the counters of the guest, and rows from its lines."""

from __future__ import annotations

import importlib
import json
import socket
import sys
import unittest
from pathlib import Path
from typing import Any

from testbed.bench import summary
from testbed.bench.rows import REFERENCES, Row, met, target
from testbed.bench.xmit import qdisc
from testbed.host.ui import Failure

GUEST = Path(__file__).resolve().parents[2] / "guest"
SNMP = """Ip: Forwarding OutRequests
Ip: 2 5
Udp: InDatagrams OutDatagrams SndbufErrors
Udp: 1 40 2
"""
TC = """qdisc fq 8001: root refcnt 2 limit 10000p flow_limit 1000p buckets 1024
 Sent 972 bytes 6 pkt (dropped 7, overlimits 0 requeues 3)
 backlog 162b 1p requeues 3
"""
PKTGEN = """Params: count 0  min_pkt_size: 162  max_pkt_size: 162
Current:
     pkts-sofar: 1234  errors: 5
     started: 1us  stopped: 2us idle: 0us
Result: OK: 1(c1+d0) usec, 1234 (162byte,0frags)
"""


def table(rows: list[Row]) -> str:
    """All rows as make bench prints them."""
    return "\n".join(summary.lines(rows, lambda _: True))


def fq(number: int, c: float, rust: float) -> list[str]:
    """A round of the two designs of a qdisc."""
    return [json.dumps({"pair": number, "case": "2 senders fq", "driver": name, "ns": ns})
            for name, ns in (("c", c), ("rust", rust))]  # fmt: skip


class Guest(unittest.TestCase):
    """The parts of the guest's programs that can run outside of a guest."""

    @classmethod
    def setUpClass(cls) -> None:
        sys.path.insert(0, str(GUEST))
        cls.addClassCleanup(sys.path.remove, str(GUEST))
        cls.senders: Any = importlib.import_module("senders")
        cls.bench: Any = importlib.import_module("qdisc_bench")

    def test_udp_says_what_it_sent_and_what_was_refused(self) -> None:
        found = self.senders.udp_counters(SNMP)
        self.assertEqual((found["OutDatagrams"], found["SndbufErrors"]), (40, 2))
        with self.assertRaises(self.senders.Wrong):
            self.senders.udp_counters(SNMP.splitlines()[0])

    def test_a_batch_is_so_many_datagrams(self) -> None:
        batches = importlib.import_module("udp_batches")
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own,
        ):
            there.bind(("127.0.0.1", 0))
            own.connect(there.getsockname())
            self.assertEqual(batches.send_batch(own, batches.messages(6)), 6)
            there.setblocking(False)
            for _ in range(3):
                self.assertEqual(there.recv(2000), bytes(batches.PAYLOAD))
            # One call takes those that have come, up to its room.
            self.assertEqual(batches.receive_batch(there, batches.messages(2)), 2)
            self.assertEqual(batches.receive_batch(there, batches.messages(2)), 1)
            self.assertRaises(BlockingIOError, there.recv, 2000)
        for call, end in ((batches.send_batch, own), (batches.receive_batch, there)):
            with self.assertRaisesRegex(OSError, "descriptor"):
                call(end, batches.messages(3))

    def test_pktgen_counts_when_it_has_ended(self) -> None:
        self.assertEqual(self.senders.pktgen_counts(PKTGEN), (1234, 5))
        with self.assertRaisesRegex(self.senders.Wrong, "Result: Starting"):
            self.senders.pktgen_counts(PKTGEN.replace("OK: 1(c1+d0)", "Starting"))

    def test_the_qdisc_has_to_be_the_one_that_is_measured(self) -> None:
        state = self.bench.queue(TC, "fq")
        self.assertEqual((state.drops, state.waiting), (7, 1))
        for text, kind in ((TC, "pfifo"), (TC + TC, "fq"), ("", "fq")):
            with self.assertRaisesRegex(self.senders.Wrong, f"not the qdisc {kind}"):
                self.bench.queue(text, kind)

    def test_no_packet_gets_lost_uncounted(self) -> None:
        def sent(attempts: int, refused: int) -> Any:
            return self.senders.Sent(attempts, refused)

        # The list was full for three, and the qdisc dropped two later.
        self.bench.check(sent(100, 3), 95, 2)
        # The qdisc reported the drop to the sender.
        self.bench.check(sent(100, 2), 98, 2)
        for delivered in (94, 99):
            with self.assertRaisesRegex(self.senders.Wrong, f"{delivered} came through"):
                self.bench.check(sent(100, 3), delivered, 2)


class Rows(unittest.TestCase):
    """The comparisons of designs."""

    def test_ratios_are_those_of_rounds_and_each_step_has_a_row(self) -> None:
        lines = [*fq(1, 300.0, 200.0), *fq(2, 330.0, 300.0)]
        rows = {row.case: row for row in qdisc.rows(lines, [], 2)}
        self.assertEqual(rows["2 senders fq"].ratios, (1.5, 1.1))
        self.assertEqual(rows["2 senders fq"].bench, "xmit-qdisc")
        self.assertTrue(met(rows["2 senders fq"]))
        self.assertNotIn("below", table(list(rows.values())))

    def test_the_cases_that_have_targets_are_measured(self) -> None:
        names = {cell["case"] for cell in qdisc.cells()}
        self.assertEqual(len(names), len(qdisc.cells()))
        for case, wanted in (("1 sender fq", 0.97), ("2 senders fq", 1.15)):
            self.assertIn(case, names)
            self.assertEqual(target(qdisc.BENCH, case), wanted)
        self.assertIsNone(target(qdisc.BENCH, "2 senders udp batches fq"))
        few = {cell["case"] for cell in qdisc.cells(few=True)}
        self.assertLessEqual(few, names)
        self.assertLessEqual({"2 senders fq", "2 senders udp batches fq"}, few)
        self.assertIn(qdisc.BENCH, REFERENCES)

    def test_designs_differ_in_what_their_names_say(self) -> None:
        designs = {one["name"]: one for cell in qdisc.cells() for one in cell["designs"]}
        self.assertEqual(designs.keys(), {"c", "rust"})
        switches = {name: tuple(one["switches"].values()) for name, one in designs.items()}
        self.assertEqual((switches["c"], switches["rust"]), ((0,), (1,)))


class Lines(unittest.TestCase):
    """The lines of the guest are complete."""

    def test_a_round_that_is_missing_is_an_error(self) -> None:
        cells = [{"case": "2 senders fq"}]
        lines = [*fq(1, 3.0, 3.0), *fq(2, 3.0, 3.0)]
        qdisc.rows(lines, cells, 2)
        with self.assertRaisesRegex(Failure, "2 senders fq: 1 of 2 rounds"):
            qdisc.rows(lines[:-1], cells, 2)
        with self.assertRaisesRegex(Failure, "2 senders fq: 0 of 2 rounds"):
            qdisc.rows([], cells, 2)
