# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit: senders race on two CPUs of User-Mode Linux."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from testbed.bench.guest import run_modules
from testbed.bench.rows import Row
from testbed.bench.xmit import figures, plot, qdisc, rounds
from testbed.bench.xmit.figures import Figures
from testbed.bench.xmit.rounds import Found
from testbed.workshop import Built

BENCH = "xmit"


@dataclass
class Measured:
    """The results of sending into a sink, and into a qdisc."""

    sink: Figures
    qdisc: list[Found]

    def rows(self) -> list[Row]:
        """The comparisons."""
        return [*self.sink.rows(), *qdisc.rows(self.qdisc)]

    def sentences(self) -> list[str]:
        """Every design with all that was counted."""
        return [
            *figures.sentences(self.sink),
            *rounds.sentences(qdisc.BENCH, self.qdisc, qdisc.LABELS),
        ]

    def record(self) -> dict[str, Any]:
        """The same as out/xmit.json has it."""
        return {
            **self.sink.record(),
            "qdisc": [one.record() for one in self.qdisc],
        }

    def draw(self, folder: Path) -> Path:
        """The rates into a sink."""
        ns = {key: median(one.ns.values()) for key, one in self.sink.found.items()}
        return plot.measured(ns, folder)


def run(ready: Built, number: int) -> Measured:
    """Boot, run a number of rounds of each, return the counts."""
    title = f"transmitting in User-Mode Linux, 2 CPUs: {number} rounds"
    sink = figures.parse(run_modules(ready, BENCH, [BENCH], number, title))
    return Measured(sink, qdisc.run(ready, number))
