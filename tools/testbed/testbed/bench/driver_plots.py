# SPDX-License-Identifier: GPL-2.0
"""Draws the ratios of the benchmarks of both drivers, a plot for each of their tables."""

from __future__ import annotations

from pathlib import Path

from testbed.bench import tcp
from testbed.bench.about import REFERENCES
from testbed.bench.forward import BENCH, OPTIONS, WINDOW
from testbed.bench.plots import files_only, powers_of_two, save
from testbed.bench.rows import Row, target

_TITLES = {
    BENCH: "Rust driver against C driver: how many times as fast",
    OPTIONS: "options: how many times as fast with the option on",
    tcp.BENCH: "TCP over a cable, Rust driver against C driver: how many times as fast",
}


def spread(row: Row) -> tuple[float, float, float]:
    """The median of a row's ratios, and its distances to the minimum and maximum."""
    ratio = row.ratio
    assert ratio is not None
    return ratio, ratio - min(row.ratios), max(row.ratios) - ratio


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """Write an SVG per table; returns the files."""
    written = []
    for bench, title in _TITLES.items():
        block = [row for row in rows if row.bench == bench and row.ratios]
        if not block:
            continue
        figure, axes = files_only().subplots(figsize=(8, 1.4 + 0.36 * len(block)))
        places = range(len(block))
        ratios, low, high = zip(*(spread(row) for row in block), strict=True)
        axes.errorbar(ratios, places, xerr=[low, high], fmt="o", capsize=3,
                      label="median, least and most of the pairs")  # fmt: skip
        goals = {place: goal for place, row in enumerate(block)
                 if (goal := target(bench, row.case)) is not None}  # fmt: skip
        if goals:
            axes.plot(list(goals.values()), list(goals), linestyle="", marker="|", markersize=16,
                      color="tab:red", label="target")  # fmt: skip
        axes.axvline(1.0, color="gray", linewidth=0.8)
        axes.set_yticks(places, [row.case for row in block])
        axes.invert_yaxis()
        axes.set_xlabel(f"ours against {REFERENCES[bench]}; right of 1 ours is faster")
        axes.set_title(title)
        axes.grid(alpha=0.3, axis="x")
        axes.legend(fontsize=8)
        written.append(save(figure, bench, folder))
    return [*written, *_windows([row for row in rows if row.bench == WINDOW], folder)]


def _windows(rows: list[Row], folder: Path) -> list[Path]:
    """Rates over the number of packets under way, a pair of lines for each machine."""
    if not rows:
        return []
    figure, axes = files_only().subplots(figsize=(8, 4.6))
    machines = dict.fromkeys(row.case.split(maxsplit=2)[2] for row in rows)
    for machine in machines:
        own = [row for row in rows if row.case.split(maxsplit=2)[2] == machine]
        for name, style in (("ours", "-"), ("reference", "--")):
            known = [(int(row.case.split()[1]), value) for row in own
                     if (value := getattr(row, name))]  # fmt: skip
            axes.plot([under_way for under_way, _ in known], [1e6 / value for _, value in known],
                      marker="o", linestyle=style,
                      label=f"{'Rust' if name == 'ours' else 'C'}, {machine}")  # fmt: skip
    powers_of_two(axes, "packets under way", "thousands of packets per second")
    axes.set_title("Forwarding with few packets under way, and with many")
    axes.legend(fontsize=8)
    return [save(figure, WINDOW, folder)]
