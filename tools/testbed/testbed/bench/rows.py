# SPDX-License-Identifier: GPL-2.0
"""From the lines of the benchmark modules to rows with ratios and targets."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import mean, median
from typing import Any

from testbed.bench.about import REFERENCES, TARGETS
from testbed.host.ui import Failure

_ROUND = re.compile(r"^round (\d+)$")
# Units of which more is better; of all others less is.
RATES = frozenset({"Mbit/s"})
_LINE = re.compile(r"bulk_bench: ([^|]+)\|([^|]+)\|(ours|reference)\|(\d+)\|(\w+)")


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
        pairs = sorted(ours.keys() & reference.keys())
        if unit in RATES:
            ratios = tuple(ours[one] / reference[one] for one in pairs)
        else:
            ratios = tuple(reference[one] / ours[one] for one in pairs)
        return cls(
            bench,
            case,
            unit,
            median(ours.values()) if ours else None,
            median(reference.values()) if reference else None,
            ratios,
        )

    @classmethod
    def of_shares(cls, bench: str, case: str, ours: float, reference: float) -> Row:
        """A row of events per packet."""
        ratios = (reference / ours,) if ours else ()
        return cls(bench, case, "per 1000", 1000 * ours, 1000 * reference, ratios)

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
        return {
            "bench": self.bench,
            "case": self.case,
            "unit": self.unit,
            "ours": None if self.ours is None else round(self.ours, 3),
            "reference": None if self.reference is None else round(self.reference, 3),
            "reference_name": REFERENCES.get(self.bench),
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "ratio_min": round(min(self.ratios), 3) if self.ratios else None,
            "ratio_max": round(max(self.ratios), 3) if self.ratios else None,
            "rounds": len(self.ratios),
        }


def parse(lines: Iterable[str]) -> list[Row]:
    """The rows by benchmark, both in the order in which they were first reported."""
    values: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(
        lambda: {"ours": {}, "reference": {}}
    )
    units: dict[tuple[str, str], str] = {}
    number = 0
    for line in lines:
        if found := _ROUND.match(line.strip()):
            number = int(found[1])
        elif found := _LINE.search(line):
            key = (found[1], found[2])
            # The modules count picoseconds, without fractions; less than one is no measurement.
            time = found[5] == "ps"
            values[key][found[3]][number] = max(int(found[4]), 1) / 1e3 if time else int(found[4])
            units[key] = "ns" if time else found[5]
    rows = []
    for key, sides in values.items():
        # Benchmarks of the reference alone have no side of ours.
        if not sides["ours"] and key[0] in REFERENCES:
            raise Failure(f"the benchmark {key[0]}, case {key[1]}, has a reference but no result")
        row = Row.of_pairs(*key, units[key], sides["ours"], sides["reference"])
        rows.append(row if row.unit == "ns" else replace(row, ratios=()))
    benches = list(dict.fromkeys(row.bench for row in rows))
    return sorted(rows, key=lambda row: benches.index(row.bench))


def target(bench: str, case: str) -> float | None:
    """The least ratio that a case should reach, if it has one."""
    known = TARGETS.get(bench, {}).items()
    return next((least for pattern, least in known if re.search(pattern, case)), None)


def table(rows: list[Row]) -> list[str]:
    """The rows as text, a block per benchmark."""
    lines: list[str] = []
    bench, width = "", 20
    for row in rows:
        if row.bench != bench:
            bench = row.bench
            against = REFERENCES.get(bench, "the reference")
            unit = f", {row.unit}" if row.unit in RATES else ""
            width = max(20, *(len(one.case) + 2 for one in rows if one.bench == bench))
            lines += ["", f"{bench}: ours against {against}{unit}",
                      f"{'case':<{width}}{'ours':>10}{'reference':>11}{'ratio':>8}"
                      f"{'(min - max)':>16}  {'target':<10}"]  # fmt: skip
        lines.append(_line(row, width))
    return lines


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "instructions":
        return f"{value:,.1f}"
    if unit == "times":
        return f"{value:.2f}"
    if unit in ("per 1000", "per MiB") and value < 10:
        return f"{value:.2f}"
    # Fractions of long times are noise.
    return f"{value:.2f}" if unit == "ns" and value < 10_000 else f"{value:,.0f}"


def _line(row: Row, width: int) -> str:
    unit = row.unit if row.unit not in ("ns", "times", *RATES) else ""
    text = f"{row.case:<{width}}{_figure(row.ours, row.unit):>10}"
    text += f"{_figure(row.reference, row.unit):>11}"
    if row.ratio is None:
        return f"{text}  {unit}".rstrip()
    wanted = target(row.bench, row.case)
    spread = f"({min(row.ratios):.2f} - {max(row.ratios):.2f})"
    verdict = "" if wanted is None else f">= {wanted:.3g} " + ("met" if met(row) else "MISSED")
    return f"{text}{row.ratio:>8.2f}{spread:>16}  {verdict}".rstrip()


def met(row: Row) -> bool:
    """Whether a row with a target reaches it."""
    wanted = target(row.bench, row.case)
    return wanted is None or (row.ratio is not None and row.ratio >= wanted)
