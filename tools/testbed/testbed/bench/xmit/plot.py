# SPDX-License-Identifier: GPL-2.0
"""Draws measured and simulated rates: of one queue, and of the seed's thirty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from testbed.bench.plots import files_only, powers_of_two, save
from testbed.bench.xmit.figures import Figures
from testbed.bench.xmit.rounds import Found
from txsim import seed
from txsim.designs import DESIGNS, Design
from txsim.simulate import Outcome

_COLORS = dict(zip(DESIGNS, ("tab:red", "tab:orange", "tab:green", "tab:blue", "tab:brown",
                             "tab:purple"), strict=True))  # fmt: skip


def _axes(axes: Any, title: str, ticks: tuple[int, ...]) -> None:
    powers_of_two(axes, "senders, each on a CPU of its own", "million packets per second")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8)


def one_queue(
    found: dict[Design, list[Outcome]], measured: dict[tuple[str, int], float], folder: Path
) -> Path:
    """Rates on one queue; those measured on this machine as crosses."""
    figure, (left, right) = files_only().subplots(1, 2, figsize=(12, 4.6))
    for design, outcomes in found.items():
        axes = right if design.ring else left
        axes.plot([one.senders for one in outcomes], [one.pps / 1e6 for one in outcomes],
                  marker="o", color=_COLORS[design], label=design.label)  # fmt: skip
        points = sorted((n, 1e3 / ns) for (name, n), ns in measured.items()
                        if name == design.name and n <= 2)  # fmt: skip
        if points:
            axes.plot(*zip(*points, strict=True), linestyle="", marker="x", markersize=9,
                      color="black")  # fmt: skip
    note = "; crosses: measured" if measured else ""
    ticks = tuple(one.senders for one in next(iter(found.values())))
    _axes(left, f"one queue (simulated{note})", ticks)
    _axes(right, f"one ring (simulated{note})", ticks)
    return save(figure, "xmit-sim", folder)


def many_queues(
    found: dict[tuple[str, Design], list[float]], checks: list[seed.Check], folder: Path
) -> Path:
    """Rates on the seed's queues; its own four as crosses."""
    figure, places = files_only().subplots(1, len(checks), figsize=(12, 4.6))
    for axes, check in zip(places, checks, strict=True):
        for (placed, design), rates in found.items():
            if placed == check.placed:
                axes.plot(seed.CURVE, [rate / 1e6 for rate in rates], marker="o", markersize=4,
                          color=_COLORS[design], label=design.label)  # fmt: skip
        for rate, marker, size, label in (
            (check.before, "x", 10, "measured before: fitted"),
            (check.after, "+", 12, "measured after: predicted"),
        ):
            axes.plot([seed.SENDERS], [rate / 1e6], linestyle="", marker=marker, markersize=size,
                      color="black", label=label)  # fmt: skip
        _axes(axes, f"{seed.QUEUES} queues with fq, {check.placed}, "
                    f"{check.transfer:.0f} ns per line", seed.CURVE)  # fmt: skip
    return save(figure, "xmit-sim-queues", folder)


def _rates(ns: Mapping[int, float]) -> tuple[float, float, float]:
    """The median rate of some rounds, and its distances to the minimum and maximum."""
    rates = [1e3 / one for one in (median(ns.values()), max(ns.values()), min(ns.values()))]
    return rates[0], rates[0] - rates[1], rates[2] - rates[0]


def _shares(axes: Any, histogram: Counter[int], design: Design) -> None:
    """The share of the values from each power of two on."""
    total = max(sum(histogram.values()), 1)
    powers = range(min(histogram, default=0), max(histogram, default=0) + 1)
    axes.plot([1 << power for power in powers], [histogram[power] / total for power in powers],
              marker=".", color=_COLORS[design], label=design.label)  # fmt: skip


def measured(figures: Figures, folder: Path) -> Path:
    """Rates over the number of senders; with two of them, batches and latencies."""
    figure, (rates, batches, latencies) = files_only().subplots(1, 3, figsize=(15, 4.6))
    counts = sorted({number for _, number in figures.found})
    for design in DESIGNS:
        points = [(number, figures.found[design.name, number]) for number in counts
                  if (design.name, number) in figures.found]  # fmt: skip
        if not points:
            continue
        middle, low, high = zip(*(_rates(one.ns) for _, one in points), strict=True)
        rates.errorbar([number for number, _ in points], middle, yerr=[low, high], capsize=3,
                       marker="o", color=_COLORS[design], label=design.label)  # fmt: skip
        if (two := figures.found.get((design.name, 2))) is not None:
            _shares(batches, two.histograms["batches"], design)
            _shares(latencies, two.histograms["latencies"], design)
    _axes(rates, "rates, two CPUs", tuple(counts))
    rates.set_xlabel("senders")
    for axes, title, label in ((batches, "2 senders: batches", "packets in a batch"),
                               (latencies, "2 senders: submitting", "ns in a call")):  # fmt: skip
        powers_of_two(axes, f"{label}, from each power of two on", "share")
        axes.set_title(title, fontsize=10)
    return save(figure, "xmit", folder)


def by_design(found: Sequence[Found], labels: Mapping[str, str], bench: str, folder: Path) -> Path:
    """Rates of designs side by side, case by case, from the slowest round to the fastest."""
    pyplot = files_only()
    cases = list(dict.fromkeys(one.case for one in found))
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.22 * len(found)))
    height = 0
    places = []
    for case in cases:
        own = sorted((one for one in found if one.case == case),
                     key=lambda one: list(labels).index(one.design))  # fmt: skip
        places.append(height + (len(own) - 1) / 2)
        for number, one in enumerate(own):
            middle, low, high = _rates(one.ns)
            color = f"C{list(labels).index(one.design)}"
            axes.barh(height + number, middle, xerr=[[low], [high]], color=color, capsize=2)
        height += len(own) + 1
    names = [name for name in labels if any(one.design == name for one in found)]
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=f"C{list(labels).index(name)}")
               for name in names]  # fmt: skip
    axes.legend(handles, [labels[name] for name in names], fontsize=8, ncols=3,
                loc="lower center", bbox_to_anchor=(0.5, 1.0))  # fmt: skip
    axes.set_yticks(places, cases)
    axes.invert_yaxis()
    axes.set_xlabel(f"{bench}: million packets per second")
    axes.grid(alpha=0.3, axis="x")
    return save(figure, bench, folder)
