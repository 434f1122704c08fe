# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit: senders race on two CPUs of User-Mode Linux."""

import json
from pathlib import Path
from statistics import median

from testbed.bench.guest import run_modules
from testbed.bench.plots import Line, draw_lines
from testbed.bench.rows import Row
from testbed.bench.xmit import figures, qdisc, rounds
from testbed.host.ui import say
from testbed.workshop import Built

BENCH = "xmit"
# All figures, in the folder out.
_FIGURES = "xmit.json"


def run(ready: Built, number: int) -> tuple[list[Row], list[Path]]:
    """Send into a sink and into a qdisc, for a number of rounds each.

    Prints every design with all that was counted; returns the comparisons, and the files written:
    all figures, and a plot.
    """
    title = f"transmitting in User-Mode Linux, 2 CPUs: {number} rounds"
    sink = figures.parse(run_modules(ready, BENCH, [BENCH], number, title))
    queues = qdisc.run(ready, number)
    told = rounds.sentences(qdisc.BENCH, queues, qdisc.LABELS)
    say(*figures.sentences(sink), *told)
    record = {**sink.record(), "qdisc": [one.record() for one in queues]}
    path = ready.env.out / _FIGURES
    path.write_text(json.dumps(record, indent=1) + "\n")
    rows = [*sink.rows(), *qdisc.rows(queues)]
    return rows, [path, _draw(sink, ready.env.out)]


def _draw(sink: figures.Figures, out: Path) -> Path:
    """Draw the rates in front of the sink over the number of senders."""
    lines: list[Line] = []
    for number, (name, label) in enumerate(figures.LABELS.items()):
        times = {n: median(one.ns.values()) for (of, n), one in sink.found.items() if of == name}
        points = sorted((senders, 1e3 / ns) for senders, ns in times.items())
        lines += [(label, f"C{number}o-", points)] if points else []
    path = out / f"bench-{BENCH}.svg"
    return draw_lines(BENCH, "senders", "million packets per second", lines, path)
