# SPDX-License-Identifier: GPL-2.0
"""Draws measured and simulated rates over the number of senders."""

from __future__ import annotations

from pathlib import Path

from testbed.bench.plots import Line, draw_lines
from txsim import seed
from txsim.designs import DESIGNS, Design
from txsim.simulate import Outcome

_COLORS = {design.name: f"C{number}" for number, design in enumerate(DESIGNS)}


def _draw(name: str, lines: list[Line], folder: Path) -> Path:
    across = "senders, each on a CPU of its own"
    return draw_lines(name, across, "million packets per second", lines, folder)


def measured(ns: dict[tuple[str, int], float], folder: Path) -> Path:
    """Rates of this machine, from times by design and number of senders."""
    return _draw("xmit", _rates(ns, "o-"), folder)


def _rates(ns: dict[tuple[str, int], float], form: str, label: str = "") -> list[Line]:
    return [
        (f"{design.label}{label}", f"{_COLORS[design.name]}{form}", points)
        for design in DESIGNS
        if (points := sorted((n, 1e3 / one) for (name, n), one in ns.items()
                             if name == design.name))
    ]  # fmt: skip


def one_queue(
    found: dict[Design, list[Outcome]], measured: dict[tuple[str, int], float], folder: Path
) -> Path:
    """Simulated rates on one queue or ring; those of this machine's two CPUs as crosses."""
    lines = _rates({key: ns for key, ns in measured.items() if key[1] <= 2}, "x", ", measured")
    for design, outcomes in found.items():
        points = [(one.senders, one.pps / 1e6) for one in outcomes]
        lines.append((design.label, f"{_COLORS[design.name]}o-", points))
    return _draw("xmit-sim", lines, folder)


def many_queues(
    found: dict[tuple[str, Design], list[float]], checks: list[seed.Check], folder: Path
) -> Path:
    """Simulated rates on the seed's queues; its own four as crosses."""
    lines: list[Line] = []
    for check, form in zip(checks, ("o-", "^--"), strict=True):
        for design in DESIGNS:
            if rates := found.get((check.placed, design)):
                points = [(n, one / 1e6) for n, one in zip(seed.CURVE, rates, strict=True)]
                label = f"{design.label}, {check.placed}"
                lines.append((label, f"{_COLORS[design.name]}{form}", points))
        fitted = [(seed.SENDERS, one / 1e6) for one in (check.before, check.after)]
        lines.append((f"{check.placed}: measured before (fitted) and after", "kx", fitted))
    return _draw("xmit-sim-queues", lines, folder)
