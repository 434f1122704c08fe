# SPDX-License-Identifier: GPL-2.0
"""Counts of the benchmark's module: from lines to figures, and to rows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from testbed.bench.rows import Row
from testbed.bench.xmit.rounds import columns, times
from testbed.host.ui import Failure
from txsim.designs import BATCH, BY_NAME, COMBINER, LLIST, LOCK, RING, RING_LOCK

_ROUND = re.compile(r"^round (\d+)$")
_LINE = re.compile(r"rust_xmit_bench: ([\w-]+)\|(\w+)\|(?:(\w+)\|)?\s*(.*)$")

# Counted as a number of events in a number of packets.
SHARES = ("calls", "doorbells", "dropped", "acquired", "contended")
# Counted as "power:count": 3:7 is 7 values from 8 to 15.
HISTOGRAMS = ("batches", "latencies")

# Rows: the benchmark, our design, its reference, the end of the case's name.
_PAIRS = (
    ("xmit", COMBINER, LLIST, ""),
    ("xmit", BATCH, LLIST, " batch enqueue"),
    ("xmit-lock", LLIST, LOCK, " llist"),
    ("xmit-lock", BATCH, LOCK, " batch enqueue"),
    ("xmit-ring", RING, RING_LOCK, " one ring"),
)


@dataclass
class Figure:
    """The results of a design with some senders, all rounds together."""

    design: str
    senders: int
    # Nanoseconds from one packet to the next, by round.
    ns: dict[int, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    packets: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def share(self, name: str) -> float:
        """Events of this name per packet."""
        return self.counts[name] / max(self.packets[name], 1)

    def record(self) -> dict[str, Any]:
        """The figure as out/xmit.json has it."""
        return {
            "design": self.design,
            "senders": self.senders,
            **times(self.ns),
            **{name: round(self.share(name), 4) for name in SHARES},
            **{name: {str(1 << power): count for power, count in
                      sorted(self.histograms[name].items())} for name in HISTOGRAMS},
        }  # fmt: skip


@dataclass
class Figures:
    """All figures, and the parameters of the run."""

    # Nanoseconds, by name.
    parameters: dict[str, float]
    found: dict[tuple[str, int], Figure]

    def record(self) -> dict[str, Any]:
        """The content of out/xmit.json."""
        return {
            "parameters": {name: round(value, 3) for name, value in self.parameters.items()},
            "figures": [figure.record() for figure in self.found.values()],
        }

    def rows(self) -> list[Row]:
        """Pairs of designs, and doorbells per packet."""
        rows = []
        for bench, ours, reference, end in _PAIRS:
            for senders in sorted({number for _, number in self.found}):
                one = self.found.get((ours.name, senders))
                other = self.found.get((reference.name, senders))
                if one is None or other is None:
                    continue
                case = f"{senders} sender{'s' if senders > 1 else ''}{end}"
                rows.append(Row.of_pairs(bench, case, "ns", one.ns, other.ns))
                if ours.ring:
                    rows.append(Row.of_shares(bench, f"{case} doorbells", one.share("doorbells"),
                                              other.share("doorbells")))  # fmt: skip
        # A bench is a block of the table.
        return sorted(rows, key=lambda row: row.bench)


def parse(lines: Iterable[str]) -> Figures:
    """The figures in the lines of the module; other lines separate the rounds."""
    parameters: dict[str, list[float]] = defaultdict(list)
    found: dict[tuple[str, int], Figure] = {}
    number = 0
    for line in lines:
        if match := _ROUND.match(line.strip()):
            number = int(match[1])
        elif match := _LINE.search(line):
            name, second, what, value = match.groups()
            try:
                if name == "parameter":
                    parameters[second].append(int(value) / 1000)
                elif name in BY_NAME and what:
                    key = (name, int(second))
                    _count(found.setdefault(key, Figure(*key)), number, what, value)
            except ValueError as error:
                raise Failure(f"a line of the benchmark makes no sense: {line.strip()}") from error
    for key, figure in found.items():
        if not figure.ns:
            raise Failure(f"the benchmark of {key[0]} with {key[1]} senders reported no time")
    # Disturbances only make times longer.
    return Figures({name: min(values) for name, values in parameters.items()}, found)


def _count(figure: Figure, number: int, what: str, value: str) -> None:
    if what == "ps":
        figure.ns[number] = int(value) / 1000
    elif what in SHARES:
        count, packets = value.split()
        figure.counts[what] += int(count)
        figure.packets[what] += int(packets)
    elif what in HISTOGRAMS:
        for word in value.split():
            power, count = word.split(":")
            figure.histograms[what][int(power)] += int(count)


def sentences(figures: Figures) -> list[str]:
    """Every design with all that was counted, by number of senders."""
    lines: list[str] = []
    titles = ("Mpps", "ns", "per 1000:", *SHARES, "batch", "half of all", "99%")
    for senders in sorted({number for _, number in figures.found}):
        lines += ["", f"xmit: {senders} sender{'s' if senders > 1 else ''}",
                  f"{'':<36}{columns(titles, titles)}"]  # fmt: skip
        for name, design in BY_NAME.items():
            figure = figures.found.get((name, senders))
            if figure is None:
                continue
            ns = median(figure.ns.values())
            cells = [f"{1e3 / ns:.2f}", f"{ns:.1f}", "",
                     *[f"{1000 * figure.share(share):,.0f}" for share in SHARES],
                     f"{_mean_batch(figure):,.1f}",
                     *[f"<{quantile(figure.histograms['latencies'], share):,}"
                       for share in (0.5, 0.99)]]  # fmt: skip
            lines.append(f"{design.label:<36}{columns(cells, titles)}")
    return lines


def _mean_batch(figure: Figure) -> float:
    """Packets per batch, at least: a range counts with its low end."""
    batches = figure.histograms["batches"]
    total = sum(batches.values())
    return sum((1 << power) * count for power, count in batches.items()) / max(total, 1)


def quantile(histogram: Counter[int], share: float) -> int:
    """The power of two below which this share of the values lies."""
    left = share * sum(histogram.values())
    for power, count in sorted(histogram.items()):
        left -= count
        if left <= 0:
            return 1 << (power + 1)
    return 0
