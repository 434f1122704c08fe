# SPDX-License-Identifier: GPL-2.0
"""Draws tables of make bench: curves of cases that differ in a number, and ratios."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from testbed.bench.about import REFERENCES
from testbed.bench.rows import Row, target

# The number is the last word, or that of a window.
_CASE = re.compile(r"^window (?P<window>\d+) (?P<machine>.*)|(?P<name>.*?)\s*(?P<size>\d+)$")
# Tables whose ratios are drawn: their cases are no curves.
_RATIOS = ("forward", "forward-option", "tcp", "xmit-qdisc", "xmit-nic")
# The label of a line, its format, and its points.
Line = tuple[str, str, Sequence[tuple[float, float]]]


def curves(rows: list[Row]) -> dict[str, dict[str, list[tuple[int, Row]]]]:
    """Cases that differ in one number, by benchmark and the rest of the name."""
    found: dict[str, dict[str, list[tuple[int, Row]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.unit == "ns" and row.ours is not None and (match := _CASE.match(row.case)):
            name = match["machine"] or match["name"] or ""
            found[row.bench][name].append((int(match["window"] or match["size"]), row))
    return {
        bench: {name: sorted(points, key=lambda one: one[0]) for name, points in lines.items()
                if len(points) > 1}
        for bench, lines in found.items()
    }  # fmt: skip


def _axes(height: float) -> tuple[Any, Any]:
    """A figure and its axes, without a screen. Imported late: most verbs do without it."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, height), layout="tight")
    return figure, axes


def _save(figure: Any, axes: Any, bench: str, folder: Path) -> Path:
    from matplotlib import pyplot

    axes.set_title(f"{bench}: ours against {REFERENCES[bench]}" if bench in REFERENCES else bench)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    path = folder / f"bench-{bench}.svg"
    figure.savefig(path)
    pyplot.close(figure)
    return path


def draw_lines(bench: str, across: str, up: str, lines: Iterable[Line], folder: Path) -> Path:
    """Write a plot of lines over a number, in powers of two."""
    figure, axes = _axes(4.6)
    for label, form, points in lines:
        axes.plot(*zip(*points, strict=True), form, label=label)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    return _save(figure, axes, bench, folder)


def spread(row: Row) -> tuple[float, float, float]:
    """The median of a row's ratios, and its distances to the minimum and maximum."""
    ratio = row.ratio
    assert ratio is not None
    return ratio, ratio - min(row.ratios), max(row.ratios) - ratio


def _draw_ratios(bench: str, block: Sequence[Row], folder: Path) -> Path:
    figure, axes = _axes(1.4 + 0.36 * len(block))
    places = range(len(block))
    ratios, low, high = zip(*(spread(row) for row in block), strict=True)
    axes.errorbar(ratios, places, xerr=[low, high], fmt="o", capsize=3,
                  label="median, least and most of the pairs")  # fmt: skip
    goals = [target(bench, row.case) or float("nan") for row in block]
    axes.plot(goals, places, "r|", markersize=16, label="target")
    axes.axvline(1.0, color="gray", linewidth=0.8)
    axes.set_yticks(places, [row.case for row in block])
    axes.invert_yaxis()
    axes.set_xlabel("right of 1 ours is faster")
    return _save(figure, axes, bench, folder)


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """Write an SVG per benchmark that has a curve, or whose ratios count; returns the files."""
    written = []
    for bench, found in curves(rows).items():
        lines: list[Line] = []
        for number, (name, points) in enumerate(found.items()):
            ours = [(size, row.ours) for size, row in points if row.ours is not None]
            known = [(size, row.reference) for size, row in points if row.reference is not None]
            lines.append((f"ours, {name}", f"C{number}o-", ours))
            lines += [(f"reference, {name}", f"C{number}x--", known)] if known else []
        if lines and bench not in _RATIOS:
            across = "packets under way" if bench.startswith("window") else "objects per call"
            written.append(draw_lines(bench, across, "ns", lines, folder))
    for bench in _RATIOS:
        if block := [row for row in rows if row.bench == bench and row.ratios]:
            written.append(_draw_ratios(bench, block, folder))
    return written
