# SPDX-License-Identifier: GPL-2.0
"""Draws tables of make bench: curves of cases that differ in a number."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from testbed.bench.about import REFERENCES
from testbed.bench.rows import Row

# The number is the last word, or that of a window.
_CASE = re.compile(r"^window (?P<window>\d+) (?P<machine>.*)|(?P<name>.*?)\s*(?P<size>\d+)$")
# A colour for each side, and a style for each of its lines.
_OURS, _REFERENCE = "C0", "C1"
_STYLES = ("o-", "s--", "^:", "v-.")
# A curve that RESULTS.md shows has more points than a table should have rows.
_MANY = 4
# Between the ends of an axis that has equal steps.
_LINEAR = 20
# The label of a line, its colour and style, and its points.
Line = tuple[str, str, Sequence[tuple[float, float]]]
# By benchmark, and by the rest of the name.
Curves = Mapping[str, Mapping[str, Sequence[tuple[int, Row]]]]


def curves(rows: Iterable[Row]) -> Curves:
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


def _draw(bench: str, lines: Sequence[Line], path: Path, digest: str) -> Path:
    """Write a plot of lines over a number, in powers of two."""
    # Late: most verbs do without it.
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot, ticker

    # The same file for the same points, with text that is text.
    matplotlib.rcParams.update({"svg.hashsalt": bench, "svg.fonttype": "none"})
    figure, axes = pyplot.subplots(figsize=(8, 4.6), layout="tight")
    for label, form, points in lines:
        axes.plot(*zip(*points, strict=True), form, label=label, markersize=4)
    numbers = sorted({x for *_, points in lines for x, _ in points})
    heights = [y for *_, points in lines for _, y in points]
    axes.set_xscale("log", base=2)
    axes.set_xticks([one for one in numbers if not int(one) & (int(one) - 1)])
    axes.minorticks_off()
    if max(heights) > _LINEAR * min(heights):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.set_xlabel("packets under way" if bench.startswith("window") else "objects per call")
    axes.set_ylabel("ns of processor time" if bench.endswith("-cost") else "ns")
    axes.set_title(f"{bench}: ours against {REFERENCES[bench]}" if bench in REFERENCES else bench)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None, "Description": digest})
    pyplot.close(figure)
    return path


def _lines(found: Mapping[str, Sequence[tuple[int, Row]]]) -> list[Line]:
    """Both sides of each curve."""
    lines: list[Line] = []
    for number, (name, points) in enumerate(found.items()):
        style = _STYLES[number % len(_STYLES)]
        ours = [(size, row.ours) for size, row in points if row.ours is not None]
        known = [(size, row.reference) for size, row in points if row.reference is not None]
        lines.append((f"ours, {name}", f"{_OURS}{style}", ours))
        lines += [(f"reference, {name}", f"{_REFERENCE}{style}", known)] if known else []
    return lines


def recorded(rows: Iterable[Row]) -> dict[str, list[Line]]:
    """The curves for RESULTS.md, by benchmark."""
    return {
        bench: _lines(found)
        for bench, found in curves(rows).items()
        if max(map(len, found.values()), default=0) > _MANY
    }


def renew(rows: Iterable[Row], folder: Path, *, write: bool = True) -> list[Path]:
    """Draw the curves for RESULTS.md whose points have changed; returns the files."""
    found = []
    for bench, lines in recorded(rows).items():
        path = folder / f"{bench}.svg"
        digest = hashlib.sha256(json.dumps(lines).encode()).hexdigest()
        # Versions of the library draw the same points differently.
        if not path.exists() or digest not in path.read_text():
            found.append(_draw(bench, lines, path, digest) if write else path)
    return found
