# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit: senders race on two CPUs of User-Mode Linux."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from testbed.bench.guest import run_modules
from testbed.bench.rows import Row
from testbed.bench.xmit import figures, plot, qdisc, rounds
from testbed.host.ui import say
from testbed.workshop import Built
from txsim.simulation import FIGURES

BENCH = "xmit"


def run(ready: Built, number: int) -> tuple[list[Row], list[Path]]:
    """Send into a sink and into a qdisc, for a number of rounds each.

    Prints every design with all that was counted; returns the comparisons, and the files written:
    a plot, and the input of the simulation.
    """
    title = f"transmitting in User-Mode Linux, 2 CPUs: {number} rounds"
    sink = figures.parse(run_modules(ready, BENCH, [BENCH], number, title))
    queues = qdisc.run(ready, number)
    told = rounds.sentences(qdisc.BENCH, queues, qdisc.LABELS)
    for line in (*figures.sentences(sink), *told):
        say(line)
    record = {**sink.record(), "qdisc": [one.record() for one in queues]}
    path = ready.env.out / FIGURES
    path.write_text(json.dumps(record, indent=1) + "\n")
    ns = {key: median(one.ns.values()) for key, one in sink.found.items()}
    rows = [*sink.rows(), *qdisc.rows(queues)]
    return rows, [path, plot.measured(ns, ready.env.out)]
