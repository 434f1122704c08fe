# SPDX-License-Identifier: GPL-2.0
"""Draws tables of make bench: curves of cases that differ in a number."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from testbed.bench.about import REFERENCES
from testbed.bench.rows import Row

# The number is the last word, or that of a window.
_CASE = re.compile(r"^window (?P<window>\d+) (?P<machine>.*)|(?P<name>.*?)\s*(?P<size>\d+)$")
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


def draw_lines(bench: str, across: str, up: str, lines: Iterable[Line], folder: Path) -> Path:
    """Write a plot of lines over a number, in powers of two."""
    # Late: most verbs do without it.
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.6), layout="tight")
    for label, form, points in lines:
        axes.plot(*zip(*points, strict=True), form, label=label)
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_title(f"{bench}: ours against {REFERENCES[bench]}" if bench in REFERENCES else bench)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    path = folder / f"bench-{bench}.svg"
    figure.savefig(path)
    pyplot.close(figure)
    return path


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """Write an SVG per benchmark that has a curve; returns the files."""
    written = []
    for bench, found in curves(rows).items():
        lines: list[Line] = []
        for number, (name, points) in enumerate(found.items()):
            ours = [(size, row.ours) for size, row in points if row.ours is not None]
            known = [(size, row.reference) for size, row in points if row.reference is not None]
            lines.append((f"ours, {name}", f"C{number}o-", ours))
            lines += [(f"reference, {name}", f"C{number}x--", known)] if known else []
        if lines:
            across = "packets under way" if bench.startswith("window") else "objects per call"
            written.append(draw_lines(bench, across, "ns", lines, folder))
    return written
