# SPDX-License-Identifier: GPL-2.0
"""Draws the curves of the benchmarks over the number of objects per call."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from testbed.bench.about import REFERENCES
from testbed.bench.rows import Row

_CASE = re.compile(r"^(.*?)\s*(\d+)$")


def curves(rows: list[Row]) -> dict[str, dict[str, list[tuple[int, Row]]]]:
    """Cases that differ in their last number, by benchmark and the text before it."""
    found: dict[str, dict[str, list[tuple[int, Row]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.unit == "ns" and row.ours is not None and (match := _CASE.match(row.case)):
            found[row.bench][match[1]].append((int(match[2]), row))
    return {
        bench: {name: sorted(points, key=lambda one: one[0]) for name, points in lines.items()
                if len(points) > 1}
        for bench, lines in found.items()
    }  # fmt: skip


def files_only() -> Any:
    """matplotlib's pyplot without a screen. Imported late: most verbs do without it."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    return pyplot


def powers_of_two(axes: Any, across: str, up: str) -> None:
    """A grid with powers of two on the x axis, and a y axis that begins at 0."""
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)


def save(figure: Any, bench: str, folder: Path) -> Path:
    """Write the plot of a benchmark, and close it."""
    path = folder / f"bench-{bench}.svg"
    figure.tight_layout()
    figure.savefig(path)
    files_only().close(figure)
    return path


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """Write an SVG per benchmark that has a curve; returns the files."""
    written = []
    for bench, lines in curves(rows).items():
        if not lines:
            continue
        figure, axes = files_only().subplots(figsize=(7, 4.2))
        for name, points in lines.items():
            sizes = [size for size, _ in points]
            label = f"ours, {name}" if len(lines) > 1 else "ours"
            [line] = axes.plot(sizes, [row.ours for _, row in points], marker="o", label=label)
            known = [(size, row.reference) for size, row in points if row.reference is not None]
            axes.plot([size for size, _ in known], [value for _, value in known], marker="x",
                      linestyle="--", color=line.get_color(),
                      label=f"{REFERENCES.get(bench, 'reference')}, {name}")  # fmt: skip
        powers_of_two(axes, "objects per call", "ns per object")
        axes.set_title(bench)
        axes.legend(fontsize=8)
        written.append(save(figure, bench, folder))
    return written
