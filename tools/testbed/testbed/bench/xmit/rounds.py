# SPDX-License-Identifier: GPL-2.0
"""Rounds measured by a guest, design by design: from its lines to rows and sentences."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

from testbed.bench.rows import Row
from testbed.host.ui import Failure

T = TypeVar("T")
# Senders, and the designs that are measured with them.
Cell = Mapping[str, Any]
# Seconds of sending: before packets count, and while they do.
Seconds = Mapping[str, float]
LONG: Seconds = {"warm": 0.1, "window": 0.4}
# Enough for a test.
SHORT: Seconds = {"warm": 0.02, "window": 0.05}


@dataclass(frozen=True)
class Pair:
    """Two designs, the block of their comparison, and the end of its case's name."""

    bench: str
    ours: str
    reference: str
    end: str = ""
    # Doorbells have a row of their own.
    doorbells: bool = False


@dataclass
class Found:
    """The results of a design in a case, all rounds together."""

    case: str
    design: str
    # Nanoseconds from one packet to the next, by round.
    ns: dict[int, float] = field(default_factory=dict)
    # Events, and the packets among which they were counted.
    counts: Counter[str] = field(default_factory=Counter)
    packets: Counter[str] = field(default_factory=Counter)
    # By power of two: 3 has the values from 8 to 15.
    histograms: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def count(self, name: str, events: int, packets: int) -> None:
        """Add events that were counted in a round."""
        self.counts[name] += events
        self.packets[name] += packets

    def share(self, name: str) -> float:
        """Events of this name per packet."""
        return self.counts[name] / max(self.packets[name], 1)

    def cells(self) -> dict[str, str]:
        """Its cells in a table, by the head of the column."""
        ns = median(self.ns.values())
        cells = {"Mpps": f"{1e3 / ns:.2f}", "ns": f"{ns:.1f}", "per 1000:": ""}
        cells |= {name: f"{1000 * self.share(name):,.1f}" for name in sorted(self.counts)}
        if batches := self.histograms.get("batches"):
            # At least: a range counts with its low end.
            total = sum((1 << power) * count for power, count in batches.items())
            cells["batch"] = f"{total / batches.total():,.1f}"
        if latencies := self.histograms.get("latencies"):
            cells["half of all"] = f"<{quantile(latencies, 0.5):,}"
            cells["99%"] = f"<{quantile(latencies, 0.99):,}"
        return cells


def quantile(histogram: Counter[int], share: float) -> int:
    """The power of two below which this share of the values lies."""
    left = share * histogram.total()
    for power, count in sorted(histogram.items()):
        left -= count
        if left <= 0:
            return 1 << (power + 1)
    return 0


_OWN = frozenset({"round", "case", "design", "ns", "attempts"})


def parse(lines: Iterable[str]) -> list[Found]:
    """The results, in the order of their first lines."""
    found: dict[tuple[str, str], Found] = {}
    for line in lines:
        try:
            record = json.loads(line)
            key = (record["case"], record["design"])
            one = found.setdefault(key, Found(*key))
            one.ns[int(record["round"])] = float(record["ns"])
            packets = int(record["attempts"])
            for name in record.keys() - _OWN:
                one.count(name, int(record[name]), packets)
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(f"a line of the benchmark makes no sense: {line.strip()}") from error
    return list(found.values())


def complete(found: Sequence[Found], cells: Sequence[Cell], rounds: int) -> None:
    """Raise an error unless every design of every cell was measured in every round."""
    counts = {(one.case, one.design): len(one.ns) for one in found}
    for cell in cells:
        for design in cell["designs"]:
            count = counts.get((cell["case"], design["name"]), 0)
            if count != rounds:
                raise Failure(
                    f"{cell['case']}, {design['name']}: {count} of {rounds} rounds were measured"
                )


def paired(
    known: Mapping[tuple[str, str], T], pairs: Sequence[Pair]
) -> Iterator[tuple[str, Pair, T, T]]:
    """Each case and pair of which both designs were measured."""
    for pair in pairs:
        for case in dict.fromkeys(case for case, _ in known):
            ours, reference = (known.get((case, one)) for one in (pair.ours, pair.reference))
            if ours is not None and reference is not None:
                yield case, pair, ours, reference


def rows(found: Sequence[Found], pairs: Sequence[Pair]) -> list[Row]:
    """The comparisons, a block for each bench."""
    result = []
    known = {(one.case, one.design): one for one in found}
    for case, pair, ours, reference in paired(known, pairs):
        name = f"{case}{pair.end}"
        result.append(Row.of_pairs(pair.bench, name, "ns", ours.ns, reference.ns))
        if pair.doorbells:
            shares = [{0: 1000 * one.share("doorbells")} for one in (ours, reference)]
            result.append(Row.of_pairs(pair.bench, f"{name} doorbells", "per 1000", *shares))
    return sorted(result, key=lambda row: row.bench)


def sentences(title: str, found: Sequence[Found], labels: Mapping[str, str]) -> list[str]:
    """Every design of every case, with all that was counted, per 1000 packets."""
    tables = [one.cells() for one in found]
    heads = list(dict.fromkeys(head for cells in tables for head in cells))
    case = max((len(one.case) + 2 for one in found), default=0)
    label = max((len(text) + 2 for text in labels.values()), default=0)

    def line(first: str, cells: Iterable[str]) -> str:
        row = zip(cells, heads, strict=True)
        return first + "".join(f"{cell:>{max(len(head) + 2, 8)}}" for cell, head in row)

    lines = ["", line(f"{title:<{case + label}}", heads)]
    for one, cells in zip(found, tables, strict=True):
        first = f"{one.case:<{case}}{labels[one.design]:<{label}}"
        lines.append(line(first, [cells.get(head, "") for head in heads]))
    return lines
