# SPDX-License-Identifier: GPL-2.0
"""Adds up the rounds of the demo: one record per driver, and ratios."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

# Rows that are compared: title, key, digits. Instructions come first, since they are the same on
# any machine. A rate is this machine's, where an interrupt costs more than on a real one.
_COMPARED = (
    ("instructions/packet", "instructions_per_packet", 1),
    ("  of these in the driver", "driver_instructions_per_packet", 1),
    ("packets/s", "pps", 0),
    ("  interrupts/packet", "interrupts_per_packet", 3),
)
# Why a frame did not arrive, as the NIC model counts it.
LOSSES = ("no_rx_descriptor", "rx_disabled", "filtered", "link_down", "in_guest")
# "bulk_free_1: 7" or "tx_free_bulk_16_31: 5": the number of bulk frees of so many SKBs.
_BULK = re.compile(r"^\s*\S*bulk\S*?_(\d+)(?:_(?:to_)?(\d+))?:\s*(\d+)\s*$", re.M)


@dataclass
class Round:
    """One driver forwarding once."""

    driver: str
    answer: dict[str, Any]
    bulk: dict[str, int] = field(default_factory=dict)
    interrupts: int | None = None


def bulk_counters(text: str) -> Counter[str]:
    """The bulk-free histogram in the output of ethtool -S."""
    counters: Counter[str] = Counter()
    for low, high, count in _BULK.findall(text):
        counters[f"{low}-{high}" if high and high != low else low] += int(count)
    return counters


def bulk_difference(before: str, after: str) -> dict[str, int]:
    """The growth of the histogram in a round, in the order of the sizes."""
    difference = bulk_counters(after)
    difference.subtract(bulk_counters(before))
    return in_order({size: count for size, count in difference.items() if count > 0})


def in_order(histogram: dict[str, int]) -> dict[str, int]:
    """Sort a histogram by the numbers that its keys begin with."""
    return dict(sorted(histogram.items(), key=lambda item: int(item[0].split("-")[0])))


def mean_bulk(histogram: dict[str, int]) -> float | None:
    """SKBs per bulk free, at least: a range counts with its low end."""
    calls = sum(histogram.values())
    if not calls:
        return None
    objects = sum(int(size.split("-")[0]) * count for size, count in histogram.items())
    return objects / calls


def combine(rounds: list[Round]) -> dict[str, Any]:
    """One driver's rounds as the record that out/demo.json holds."""

    def total(name: str) -> Any:
        return sum(one.answer.get(name) or 0 for one in rounds)

    def merged(name: str) -> Counter[str]:
        parts = (Counter[str](one.answer.get(name) or {}) for one in rounds)
        return sum(parts, Counter[str]())

    bulk = sum((Counter(one.bulk) for one in rounds), Counter[str]())
    interrupts = [one.interrupts for one in rounds if one.interrupts is not None]
    return {
        "sent": total("sent"),
        "forwarded": total("forwarded"),
        "lost": dict.fromkeys(LOSSES, 0) | merged("lost"),
        "duplicated": total("duplicated"),
        "damaged": total("damaged"),
        "reordered": total("reordered"),
        "seconds": round(total("seconds"), 3),
        "pps": round(total("forwarded") / total("seconds")) if total("seconds") else None,
        "instructions_per_packet": None,
        "driver_instructions_per_packet": None,
        "interrupts_per_packet": (
            round(sum(interrupts) / total("forwarded"), 4)
            if interrupts and total("forwarded")
            else None
        ),
        "bulk_free_histogram": in_order(bulk),
    }


def ratios(drivers: dict[str, dict[str, Any]]) -> dict[str, float | None]:
    """Rust over C for comparable figures; below 1 is better for instructions."""
    rust, c = drivers.get("rust"), drivers.get("c")
    names = [key for _, key, _ in _COMPARED]
    result: dict[str, float | None] = dict.fromkeys(names)
    if rust and c:
        for name in names:
            if rust.get(name) and c.get(name):
                result[name] = round(rust[name] / c[name], 4)
    return result


def problems(name: str, record: dict[str, Any], wanted: int) -> list[str]:
    """The reasons for which the demo fails for a driver."""
    found = []
    if record["forwarded"] < wanted:
        found.append(f"{name}: {record['forwarded']:,} of {wanted:,} frames were forwarded")
    for key in ("damaged", "duplicated", "reordered"):
        if record[key]:
            found.append(f"{name}: {record[key]:,} frames were {key}")
    if record["lost"].get("in_guest"):
        found.append(f"{name}: {record['lost']['in_guest']:,} frames were lost in the guest")
    return found


def _number(value: Any, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def table(drivers: dict[str, dict[str, Any]], ratio: dict[str, float | None]) -> list[str]:
    """The table that the demo prints."""
    sides, titles = list(drivers.values()), {"rust": "Rust", "c": "C"}
    histograms = [one["bulk_free_histogram"] for one in sides]
    rows = [["", *[titles.get(name, name) for name in drivers], "Rust/C"]]

    def row(title: str, values: Iterable[Any], digits: int = 0, last: str = "") -> None:
        rows.append([title, *[_number(one, digits) for one in values], last])

    for title, key, digits in _COMPARED:
        row(title, [one.get(key) for one in sides], digits, _number(ratio.get(key), 3))
    row("frames in", [one["sent"] for one in sides])
    row("forwarded", [one["forwarded"] for one in sides])
    row("lost", [sum(one["lost"].values()) for one in sides])
    for reason in LOSSES:
        if any(one["lost"].get(reason) for one in sides):
            row(f"  {reason.replace('_', ' ')}", [one["lost"].get(reason, 0) for one in sides])
    for name in ("duplicated", "damaged", "reordered"):
        row(name, [one[name] for one in sides])
    for size in in_order({size: 0 for one in histograms for size in one}):
        title = f"frees of {size} SKB{'' if size == '1' else 's'}"
        row(title, [one.get(size, 0) for one in histograms])
    row("SKBs per free (at least)", map(mean_bulk, histograms), 1)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = []
    for first, *rest in rows:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        text.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return [text[0], "-" * (sum(widths) + 2 * (len(widths) - 1)), *text[1:]]
