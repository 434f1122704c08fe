# SPDX-License-Identifier: GPL-2.0
"""From the lines of the benchmark modules to rows with ratios and targets."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from testbed.bench.about import REFERENCES, TARGETS
from testbed.host.ui import Failure

_ROUND = re.compile(r"^round (\d+)$")
_LINE = re.compile(r"bulk_bench: ([^|]+)\|([^|]+)\|(ours|reference)\|(\d+)\|(\w+)")
# Units of which more is better; of all others less is.
RATES = frozenset({"Mbit/s"})
# Units in which sides are compared, round by round.
_COMPARED = frozenset({"ns", "times", "instructions", "doorbells", *RATES})

# Of a row: bench, case, unit.
Key = tuple[str, str, str]
# By row, whether it is ours, and round.
Values = defaultdict[Key, dict[bool, dict[int, float]]]


def no_values() -> Values:
    """Rows to be filled with values."""
    return defaultdict(lambda: {True: {}, False: {}})


@dataclass(frozen=True)
class Row:
    """One case: medians over the rounds, and how the ratio spreads."""

    bench: str
    case: str
    unit: str
    ours: float | None
    reference: float | None
    ratios: tuple[float, ...]

    @classmethod
    def of_pairs(
        cls, bench: str, case: str, unit: str, ours: dict[int, float], reference: dict[int, float]
    ) -> Row:
        """A row from the values of rounds; a round with one side only has no ratio."""
        both = ours.keys() & reference.keys() if unit in _COMPARED else ()
        pairs = [(ours[one], reference[one]) for one in sorted(both)]
        ratios = (mine / other if unit in RATES else other / mine for mine, other in pairs if mine)
        medians = [median(side.values()) if side else None for side in (ours, reference)]
        return cls(bench, case, unit, medians[0], medians[1], tuple(ratios))

    @classmethod
    def of_events(
        cls, bench: str, case: str, unit: str, ours: Iterable[float], reference: Iterable[float]
    ) -> Row:
        """A row of means, without a ratio: most often there is nothing to divide by."""
        scale = 1000 if unit == "per 1000" else 1
        both = [[scale * value for value in values] for values in (ours, reference)]
        means = [mean(values) if values else None for values in both]
        return cls(bench, case, unit, means[0], means[1], ())

    @property
    def ratio(self) -> float | None:
        """Median of the ratios of pairs of rounds; above 1 we are faster."""
        return median(self.ratios) if self.ratios else None

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Row:
        """The row that record() has written; it keeps the median and the ends of the ratios."""
        names = ("ratio_min", "ratio", "ratio_max")
        ratios = tuple(float(record[name]) for name in names if record.get(name) is not None)
        known = (record["bench"], record["case"], record["unit"])
        return cls(*known, record["ours"], record["reference"], ratios)

    def record(self) -> dict[str, Any]:
        """The row as out/bench.json has it."""

        def rounded(value: float | None) -> float | None:
            return None if value is None else round(value, 3)

        return {
            "bench": self.bench,
            "case": self.case,
            "unit": self.unit,
            "ours": rounded(self.ours),
            "reference": rounded(self.reference),
            "reference_name": REFERENCES.get(self.bench),
            "ratio": rounded(self.ratio),
            "ratio_min": rounded(min(self.ratios, default=None)),
            "ratio_max": rounded(max(self.ratios, default=None)),
            "rounds": len(self.ratios),
        }


def rows_of(values: Values) -> list[Row]:
    """The rows; those of events are means."""
    return [
        Row.of_events(*key, sides[True].values(), sides[False].values())
        if key[2].startswith("per ")
        else Row.of_pairs(*key, sides[True], sides[False])
        for key, sides in values.items()
    ]


def parse(lines: Iterable[str]) -> list[Row]:
    """The rows by benchmark, both in the order in which they were first reported."""
    values, number = no_values(), 0
    for line in lines:
        if found := _ROUND.match(line.strip()):
            number = int(found[1])
        elif found := _LINE.search(line):
            bench, case, side, value, unit = found.groups()
            # The modules count picoseconds, without fractions; less than one is no measurement.
            figure, unit = (max(int(value), 1) / 1e3, "ns") if unit == "ps" else (int(value), unit)
            values[bench, case, unit][side == "ours"][number] = figure
    for (bench, case, _), sides in values.items():
        # Benchmarks of the reference alone have no side of ours.
        if not sides[True] and bench in REFERENCES:
            raise Failure(f"the benchmark {bench}, case {case}, has a reference but no result")
    benches = list(dict.fromkeys(bench for bench, _, _ in values))
    return sorted(rows_of(values), key=lambda row: benches.index(row.bench))


def target(bench: str, case: str) -> float | None:
    """The least ratio that a case should reach, if it has one."""
    known = TARGETS.get(bench, {}).items()
    return next((least for pattern, least in known if re.search(pattern, case)), None)


# By unit: the values below which two digits behind the point are no noise.
_PRECISE = {"times": math.inf, "per 1000": 10, "per MiB": 10, "ns": 10_000}


def figure(value: float | None, unit: str) -> str:
    """A value, with the digits that mean something."""
    if value is None:
        return "-"
    if value < _PRECISE.get(unit, 0):
        return f"{value:.2f}"
    return f"{value:,.1f}" if unit == "instructions" else f"{value:,.0f}"


def met(row: Row) -> bool:
    """Whether a row with a target reaches it."""
    wanted = target(row.bench, row.case)
    return wanted is None or (row.ratio is not None and row.ratio >= wanted)
