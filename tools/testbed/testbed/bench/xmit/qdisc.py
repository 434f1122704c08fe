# SPDX-License-Identifier: GPL-2.0
"""Queueing disciplines in front of a device that takes everything, natively, with two CPUs.

Unlike in the module that measure.py loads, all of it is the network stack's own:
dev_queue_xmit(), a qdisc, and a device, here a dummy. Senders are threads of
pktgen, each with a processor of its own, that send without pause; in some cases,
processes with UDP sockets that take batches, possibly more than there are processors.
guest/qdisc_bench.py measures; this module selects the cases and makes the rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from testbed.bench.guest import measure
from testbed.bench.in_turn import Figure, collect
from testbed.bench.rows import Row, rows_of
from testbed.host.ui import Failure
from testbed.workshop import Built

BENCH = "xmit-qdisc"
# Seconds of sending: before packets count, and while they do. The short ones are for a test.
Seconds = Mapping[str, float]
LONG: Seconds = {"warm": 0.1, "window": 0.4}
SHORT: Seconds = {"warm": 0.02, "window": 0.05}

# By default fq allows 100 packets of a flow in the queue, fewer than a sender may have in flight.
_QDISCS = {
    "fq": ["fq", "limit", "10000", "flow_limit", "1000"],
    "pfifo": ["pfifo", "limit", "10000"],
}


def _designs(qdisc: str) -> list[dict[str, Any]]:
    """The list of __dev_xmit_skb(), and the list in Rust."""
    return [{"name": name, "qdisc": _QDISCS[qdisc], "switches": {"xmit_llist_rust": rust}}
            for name, rust in (("c", 0), ("rust", 1))]  # fmt: skip


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


def run(ready: Built, number: int, seconds: Seconds = LONG) -> list[Row]:
    """Boot, measure, and return the comparisons; a short run takes a few cases."""
    some = cells(few=seconds != LONG)
    plan = {"rounds": number, "seconds": seconds, "cells": some}
    title = f"queueing disciplines in User-Mode Linux, 2 CPUs: {number} rounds"
    guest = ready.uml(BENCH)
    outcome = measure(guest, "qdisc_bench.py", title, plan, timeout=1800, ports=0)
    return rows(outcome.results.get(f"{BENCH}.jsonl", "").splitlines(), some, number)


def rows(lines: Sequence[str], some: Sequence[Mapping[str, Any]], number: int) -> list[Row]:
    """The comparisons in the guest's lines; both sides of a cell are there in each round."""
    found = rows_of(collect(lines, _figures))
    compared = {row.case: len(row.ratios) for row in found}
    for cell in some:
        if (count := compared.get(cell["case"], 0)) != number:
            raise Failure(f"{cell['case']}: {count} of {number} rounds were measured")
    return found


def _figures(record: Mapping[str, Any]) -> Iterator[Figure]:
    yield "ns", (BENCH, record["case"], "ns")
