# SPDX-License-Identifier: GPL-2.0
"""Senders in front of a sink or a simulated ring: from the lines of the module to figures."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.bench.rows import Row
from testbed.bench.xmit import rounds
from testbed.bench.xmit.rounds import Found, Pair
from testbed.host.ui import Failure

_ROUND = re.compile(r"^round (\d+)$")
_LINE = re.compile(r"rust_xmit_bench: ([\w-]+)\|(\w+)\|(?:(\w+)\|)?\s*(.*)$")
# Counted as "power:count".
_HISTOGRAMS = ("batches", "latencies")
# The designs, by their names in the module.
LABELS = {
    "lock": "spinlock",
    "llist": "llist, as in __dev_xmit_skb()",
    "combiner": "combiner",
    "batch": "combiner, batch enqueue",
    "ring-lock": "ring, TX queue lock",
    "ring": "ring, combiner, doorbell per batch",
}
_PAIRS = (
    Pair("xmit", "combiner", "llist"),
    Pair("xmit", "batch", "llist", " batch enqueue"),
    Pair("xmit-lock", "llist", "lock", " llist"),
    Pair("xmit-lock", "batch", "lock", " batch enqueue"),
    Pair("xmit-ring", "ring", "ring-lock", " one ring", doorbells=True),
)


@dataclass
class Figures:
    """All figures by design and number of senders."""

    found: dict[tuple[str, int], Found]

    def rows(self) -> list[Row]:
        """Pairs of designs, and doorbells per packet."""
        return rounds.rows([*self.found.values()], _PAIRS)


def parse(lines: Iterable[str]) -> Figures:
    """The figures in the lines of the module; other lines separate the rounds."""
    found: dict[tuple[str, int], Found] = {}
    number = 0
    for line in lines:
        if match := _ROUND.match(line.strip()):
            number = int(match[1])
        elif match := _LINE.search(line):
            name, second, what, value = match.groups()
            try:
                if name in LABELS and what:
                    senders = int(second)
                    case = f"{senders} sender{'s' if senders > 1 else ''}"
                    figure = found.setdefault((name, senders), Found(case, name))
                    _count(figure, number, what, value)
            except ValueError as error:
                raise Failure(f"a line of the benchmark makes no sense: {line.strip()}") from error
    for (name, senders), figure in found.items():
        if not figure.ns:
            raise Failure(f"the benchmark of {name} with {senders} senders reported no time")
    return Figures(found)


def _count(figure: Found, number: int, what: str, value: str) -> None:
    if what == "ps":
        figure.ns[number] = int(value) / 1000
    elif what in _HISTOGRAMS:
        for word in value.split():
            power, count = word.split(":")
            figure.histograms[what][int(power)] += int(count)
    else:
        count, packets = value.split()
        figure.count(what, int(count), int(packets))


def sentences(figures: Figures) -> list[str]:
    """Every design with all that was counted, by number of senders."""
    found = sorted(figures.found.items(), key=lambda one: one[0][1])
    return rounds.sentences("xmit", [figure for _, figure in found], LABELS)
