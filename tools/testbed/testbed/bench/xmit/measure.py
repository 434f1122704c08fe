# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit: senders race on two CPUs of User-Mode Linux."""

from testbed.bench.guest import run_modules
from testbed.bench.rows import Row
from testbed.bench.xmit import figures, qdisc, rounds
from testbed.host.ui import say
from testbed.workshop import Built

BENCH = "xmit"


def run(ready: Built, number: int) -> list[Row]:
    """Send into a sink and into a qdisc, for a number of rounds each.

    Prints every design with all that was counted; returns the comparisons.
    """
    title = f"transmitting in User-Mode Linux, 2 CPUs: {number} rounds"
    sink = figures.parse(run_modules(ready, BENCH, [BENCH], number, title))
    queues = qdisc.run(ready, number)
    told = rounds.sentences(qdisc.BENCH, queues, qdisc.LABELS)
    say(*figures.sentences(sink), *told)
    return [*sink.rows(), *qdisc.rows(queues)]
