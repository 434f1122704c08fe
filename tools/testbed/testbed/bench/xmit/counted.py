# SPDX-License-Identifier: GPL-2.0
"""Senders in front of a qdisc, in QEMU: instructions per packet, and those of waiting for locks.

The same cells as in qdisc.py, with senders of pktgen. Each of them has a virtual processor of its
own, and all virtual processors run at once.
"""

import json
import os
from collections.abc import Sequence

from insn.counts import WindowCount
from testbed.bench import instructions
from testbed.bench.rows import Row, no_values
from testbed.bench.xmit import qdisc
from testbed.host.ui import Failure, say
from testbed.workshop import Built

BENCH = "insn-senders"
# Virtual processors, all with a sender.
_SENDERS = (2, 4, 8)
_ROUNDS = 3
# A packet takes microseconds in an emulated processor.
_SECONDS = {"warm": 0.2, "window": 1.0}
# The loops of a processor that waits for a lock.
_WAITING = ("queued_spin_lock_slowpath", "queued_read_lock_slowpath", "queued_write_lock_slowpath")
# The end of the cases' names that have those.
_WAITS = " waiting"


def run(ready: Built) -> list[Row]:
    """Boot with each number of processors, count, return the comparisons."""
    rows = []
    for senders in _SENDERS:
        if senders > (present := len(os.sched_getaffinity(0))):
            say(f"skipped: {senders} senders need as many processors, and there are {present}")
        else:
            rows += _count(ready, senders)
    return rows


def _count(ready: Built, senders: int) -> list[Row]:
    plan = {"rounds": _ROUNDS, "seconds": _SECONDS, "counted": True,
            "cells": qdisc.cells_of_pktgen(senders)}  # fmt: skip
    title = f"counting instructions of {senders} senders: {_ROUNDS} rounds"
    outcome, windows = instructions.windows(ready, BENCH, "qdisc_bench.py", title, {}, plan=plan,
                                            cpus=senders, ports=0)  # fmt: skip
    return per_packet(outcome.results.get(f"{qdisc.BENCH}.jsonl", "").splitlines(), windows)


def per_packet(lines: Sequence[str], windows: Sequence[WindowCount]) -> list[Row]:
    """Instructions per packet; each line of the guest belongs to a window, in order."""
    records = [json.loads(line) for line in lines]
    if len(records) != len(windows) or not all(one.complete for one in windows):
        raise Failure(f"{len(windows)} windows of {len(records)} measurements were counted")
    values = no_values()
    for record, window in zip(records, windows, strict=True):
        waiting = sum(one.instructions for one in window.functions
                      if one.function.endswith(_WAITING))  # fmt: skip
        for end, value in (("", sum(window.by_module.values())), (_WAITS, waiting)):
            sides = values[BENCH, record["case"] + end, "instructions"]
            sides[record["driver"] == "rust"][record["pair"]] = value / record["counted"]
    # Waiting may be none at all, by which nothing can be divided.
    return [Row.of_events(*key, sides[True].values(), sides[False].values())
            if key[1].endswith(_WAITS) else Row.of_pairs(*key, sides[True], sides[False])
            for key, sides in values.items()]  # fmt: skip
