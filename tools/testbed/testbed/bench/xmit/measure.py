# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit: senders race on two CPUs of User-Mode Linux."""

from testbed.bench.guest import run_modules
from testbed.bench.rows import Row, parse
from testbed.bench.xmit import qdisc
from testbed.workshop import Built

BENCH = "xmit"


def run(ready: Built, number: int) -> list[Row]:
    """Send into a sink and into a qdisc, for a number of rounds each; the comparisons."""
    title = f"transmitting in User-Mode Linux, 2 CPUs: {number} rounds"
    sink = parse(run_modules(ready, BENCH, [BENCH], number, title))
    return [*sink, *qdisc.run(ready, number)]
