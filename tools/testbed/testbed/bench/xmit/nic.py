# SPDX-License-Identifier: GPL-2.0
"""Many senders on one ring of the modelled card, natively: combined, or with its lock.

The Rust driver is compared with itself. A doorbell costs a message to the model,
or next to nothing where tail registers are memory that guest and model share.
guest/nic_bench.py measures; this module selects the cases and makes the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testbed.bench.rows import Row
from testbed.bench.xmit.rounds import LONG, Found, Pair, Seconds
from testbed.bench.xmit.rounds import rows as compare
from testbed.bench.xmit.rounds import run as measured
from testbed.boot.job import Job
from testbed.workshop import Built

BENCH = "xmit-nic"
_CPUS = 2
OFF, ON = "off", "on"
LABELS = {OFF: "TX queue lock", ON: "combined"}
_SHARED = " shared tails"


def cells(shared: bool, few: bool = False) -> list[dict[str, Any]]:
    """The cases of a guest."""
    suffix = _SHARED if shared else ""
    return [
        {
            "case": f"{senders} sender{'s' if senders > 1 else ''} one ring{suffix}",
            "senders": senders,
            "designs": [{"name": OFF, "flag": "off"}, {"name": ON, "flag": "on"}],
        }
        for senders in ((2,) if few else (1, 2, 4))
    ]


def run(ready: Built, rounds: int, seconds: Seconds = LONG) -> list[Found]:
    """Boot once for each kind of doorbell, measure, and return the results.

    A short run takes one kind, and a few cases.
    """
    ready.kernels["uml"].module("rust")
    kinds = (False, True) if seconds == LONG else (True,)
    return [one for shared in kinds for one in _run(ready, rounds, seconds, shared)]


def _run(ready: Built, rounds: int, seconds: Seconds, shared: bool) -> list[Found]:
    env = ready.env
    plan = {"rounds": rounds, "seconds": seconds, "cells": cells(shared, few=seconds != LONG)}
    job = Job(
        env.clone / "tools/testbed/guest/nic_bench.py",
        "none",
        timeout=900,
        cpus=_CPUS,
        ports=2,
        accel="native",
        shared_tails=shared,
        pinned=True,
    )
    name = f"{BENCH}{'-shared' if shared else ''}"
    title = f"one ring in User-Mode Linux{',' + _SHARED if shared else ''}: {rounds} rounds"
    found = measured(ready.uml(name), job, title, f"{BENCH}.jsonl", plan)
    (env.out / f"results/{BENCH}.jsonl").rename(env.out / f"results/{name}.jsonl")
    return found


def rows(found: Sequence[Found]) -> list[Row]:
    """The comparisons, and doorbells per packet."""
    result = compare(found, [Pair(BENCH, ON, OFF)])
    known = {(one.case, one.design): one for one in found}
    for case in dict.fromkeys(one.case for one in found):
        ours, reference = known.get((case, ON)), known.get((case, OFF))
        if ours is not None and reference is not None:
            result.append(Row.of_shares(BENCH, f"{case} doorbells", ours.share("doorbells"),
                                        reference.share("doorbells")))  # fmt: skip
    return result
