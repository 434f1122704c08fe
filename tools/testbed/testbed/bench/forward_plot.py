# SPDX-License-Identifier: GPL-2.0
"""Draws the ratios of the forwarding benchmark, a plot for each of its tables."""

from __future__ import annotations

from pathlib import Path

from testbed.bench.about import REFERENCES
from testbed.bench.forward import BENCH, OPTIONS
from testbed.bench.plots import files_only, save
from testbed.bench.rows import Row, target

_TITLES = {
    BENCH: "Rust driver against C driver: how many times as fast",
    OPTIONS: "options: how many times as fast with the option on",
}


def spread(row: Row) -> tuple[float, float, float]:
    """The median of a row's ratios, and how far they reach below and above."""
    ratio = row.ratio
    assert ratio is not None
    return ratio, ratio - min(row.ratios), max(row.ratios) - ratio


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """Write an SVG per table; returns the files."""
    tables = {bench: [row for row in rows if row.bench == bench and row.ratios]
              for bench in (BENCH, OPTIONS)}  # fmt: skip
    if not any(tables.values()):
        return []
    pyplot = files_only()
    written = []
    for bench, block in tables.items():
        if not block:
            continue
        figure, axes = pyplot.subplots(figsize=(8, 1.4 + 0.36 * len(block)))
        places = range(len(block))
        points = [spread(row) for row in block]
        axes.errorbar([ratio for ratio, _, _ in points], places,
                      xerr=[[low for _, low, _ in points], [high for _, _, high in points]],
                      fmt="o", capsize=3, label="median, least and most of the pairs")  # fmt: skip
        goals = [(target(row.bench, row.case), place)
                 for row, place in zip(block, places, strict=True)]  # fmt: skip
        wanted = [(goal, place) for goal, place in goals if goal is not None]
        if wanted:
            axes.plot([goal for goal, _ in wanted], [place for _, place in wanted],
                      linestyle="", marker="|", markersize=16, color="tab:red",
                      label="target")  # fmt: skip
        axes.axvline(1.0, color="gray", linewidth=0.8)
        axes.set_yticks(list(places), [row.case for row in block])
        axes.invert_yaxis()
        axes.set_xlabel(f"{REFERENCES[bench]} / ours, time per packet; right of 1 ours is faster")
        axes.set_title(_TITLES[bench])
        axes.grid(alpha=0.3, axis="x")
        axes.legend(fontsize=8)
        written.append(save(figure, bench, folder))
    return written
