# SPDX-License-Identifier: GPL-2.0
"""Queueing disciplines in front of a device that takes everything, natively, with two CPUs.

Unlike in the module that measure.py loads, all of it is the network stack's own:
dev_queue_xmit(), a qdisc, and a device, here a dummy. Senders are threads of
pktgen, each with a processor of its own, that send without pause; in some cases,
processes with UDP sockets that take batches, possibly more than there are processors.
guest/qdisc_bench.py measures; this module selects the cases and makes the rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.bench.guest import measure
from testbed.bench.rows import Row
from testbed.bench.xmit import rounds
from testbed.bench.xmit.rounds import LONG, Found, Seconds
from testbed.workshop import Built

BENCH = "xmit-qdisc"

# By default fq allows 100 packets of a flow in the queue, fewer than a sender may have in flight.
_QDISCS = {
    "fq": ["fq", "limit", "10000", "flow_limit", "1000"],
    "pfifo": ["pfifo", "limit", "10000"],
}
# The designs: the list of __dev_xmit_skb(), and the list in Rust.
C, RUST = "c", "rust"


def _designs(qdisc: str) -> list[dict[str, Any]]:
    return [{"name": name, "qdisc": _QDISCS[qdisc], "switches": {"xmit_llist_rust": rust}}
            for name, rust in ((C, 0), (RUST, 1))]  # fmt: skip


# Loads, and their words in the names of cases.
_UDP, _PKTGEN = "udp", "pktgen"
_WORDS = {_PKTGEN: "", _UDP: "udp batches "}


def _cell(load: str, senders: int, qdisc: str) -> dict[str, Any]:
    case = f"{senders} sender{'s' if senders > 1 else ''} {_WORDS[load]}{qdisc}"
    return {"case": case, "load": load, "senders": senders, "designs": _designs(qdisc)}


_ALL: Mapping[tuple[str, str], tuple[int, ...]] = {
    (_PKTGEN, "fq"): (1, 2),
    (_PKTGEN, "pfifo"): (1, 2),
    (_UDP, "fq"): (1, 2, 4),
    (_UDP, "pfifo"): (1, 2),
}


def cells(few: bool = False) -> list[dict[str, Any]]:
    """The cases; with `few`, those with two senders of each load."""
    return [_cell(load, senders, qdisc)
            for (load, qdisc), numbers in _ALL.items() for senders in numbers
            if not few or senders == 2]  # fmt: skip


def cells_of_pktgen(senders: int) -> list[dict[str, Any]]:
    """The cells of so many senders, each a thread of pktgen."""
    return [_cell(_PKTGEN, senders, kind) for load, kind in _ALL if load == _PKTGEN]


def run(ready: Built, number: int, seconds: Seconds = LONG) -> list[Found]:
    """Boot, measure, and return the results; a short run takes a few cases."""
    some = cells(few=seconds != LONG)
    plan = {"rounds": number, "seconds": seconds, "cells": some}
    title = f"queueing disciplines in User-Mode Linux, 2 CPUs: {number} rounds"
    guest = ready.uml(BENCH)
    outcome = measure(guest, "qdisc_bench.py", title, plan, timeout=1800, ports=0)
    found = rounds.parse(outcome.results.get(f"{BENCH}.jsonl", "").splitlines())
    rounds.complete(found, some, number)
    return found


def rows(found: Sequence[Found]) -> list[Row]:
    """The comparisons."""
    known = {(one.case, one.design): one.ns for one in found}
    return [Row.of_pairs(BENCH, case, "ns", *both)
            for case, *both in rounds.paired(known, RUST, C)]  # fmt: skip
