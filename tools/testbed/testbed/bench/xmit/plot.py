# SPDX-License-Identifier: GPL-2.0
"""Draws what was measured, and what was simulated: one queue, and the seed's thirty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from testbed.bench.plots import files_only, save
from testbed.bench.xmit.figures import Figures
from testbed.bench.xmit.rounds import Found
from txsim import seed
from txsim.designs import DESIGNS, Design
from txsim.simulate import Outcome

_COLORS = dict(
    zip(
        (design.name for design in DESIGNS),
        ("tab:red", "tab:orange", "tab:green", "tab:blue", "tab:brown", "tab:purple"),
        strict=True,
    )
)


def _axes(axes: Any, title: str, ticks: tuple[int, ...]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("senders, each on a CPU of its own")
    axes.set_ylabel("million packets per second")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def one_queue(
    found: dict[Design, list[Outcome]], measured: dict[tuple[str, int], float], folder: Path
) -> Path:
    """Rates on one queue; what was measured on this machine as crosses."""
    pyplot = files_only()
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.6))
    for design, outcomes in found.items():
        axes = right if design.ring else left
        color = _COLORS[design.name]
        axes.plot([one.senders for one in outcomes], [one.pps / 1e6 for one in outcomes],
                  marker="o", color=color, label=design.label)  # fmt: skip
        points = sorted((n, 1e3 / ns) for (name, n), ns in measured.items()
                        if name == design.name and n <= 2)  # fmt: skip
        if points:
            axes.plot([n for n, _ in points], [rate for _, rate in points], linestyle="",
                      marker="x", markersize=9, color="black")  # fmt: skip
    note = "; crosses: measured" if measured else ""
    ticks = tuple(one.senders for one in next(iter(found.values())))
    _axes(left, f"one queue (simulated{note})", ticks)
    _axes(right, f"one ring (simulated{note})", ticks)
    return save(figure, "xmit-sim", folder)


def many_queues(
    found: dict[tuple[str, Design], list[float]], checks: list[seed.Check], folder: Path
) -> Path:
    """Rates on the seed's queues; its own four as crosses."""
    pyplot = files_only()
    figure, places = pyplot.subplots(1, len(checks), figsize=(12, 4.6))
    for axes, check in zip(places, checks, strict=True):
        for (placed, design), rates in found.items():
            if placed == check.placed:
                axes.plot(seed.CURVE, [rate / 1e6 for rate in rates], marker="o", markersize=4,
                          color=_COLORS[design.name], label=design.label)  # fmt: skip
        for rate, marker, size, label in (
            (check.before, "x", 10, "measured before: fitted"),
            (check.after, "+", 12, "measured after: predicted"),
        ):
            axes.plot([seed.SENDERS], [rate / 1e6], linestyle="", marker=marker, markersize=size,
                      color="black", label=label)  # fmt: skip
        _axes(axes, f"{seed.QUEUES} queues with fq, {check.placed}, "
                    f"{check.transfer:.0f} ns per line", seed.CURVE)  # fmt: skip
    return save(figure, "xmit-sim-queues", folder)


def _shares(axes: Any, histogram: Counter[int], design: Design) -> None:
    """How many of all values there are from each power of two on."""
    total = max(sum(histogram.values()), 1)
    powers = range(min(histogram, default=0), max(histogram, default=0) + 1)
    axes.plot([1 << power for power in powers], [histogram[power] / total for power in powers],
              marker=".", color=_COLORS[design.name], label=design.label)  # fmt: skip


def measured(figures: Figures, folder: Path) -> Path:
    """Rates over the number of senders; with two of them, batches and latencies."""
    pyplot = files_only()
    figure, (rates, batches, latencies) = pyplot.subplots(1, 3, figsize=(15, 4.6))
    counts = sorted({number for _, number in figures.found})
    for design in DESIGNS:
        points = [(number, figures.found[design.name, number]) for number in counts
                  if (design.name, number) in figures.found]  # fmt: skip
        middle = [1e3 / median(one.ns.values()) for _, one in points]
        low = [1e3 / max(one.ns.values()) for _, one in points]
        high = [1e3 / min(one.ns.values()) for _, one in points]
        reach = [[one - less for one, less in zip(middle, low, strict=True)],
                 [more - one for one, more in zip(middle, high, strict=True)]]  # fmt: skip
        rates.errorbar([number for number, _ in points], middle, yerr=reach, capsize=3, marker="o",
                       color=_COLORS[design.name], label=design.label)  # fmt: skip
        if (two := figures.found.get((design.name, 2))) is not None:
            _shares(batches, two.histograms["batches"], design)
            _shares(latencies, two.histograms["latencies"], design)
    _axes(rates, "rates, two CPUs", tuple(counts))
    rates.set_xlabel("senders")
    for axes, title, label in ((batches, "2 senders: batches", "packets in a batch"),
                               (latencies, "2 senders: submitting", "ns in a call")):  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(f"{label}, from each power of two on")
        axes.set_ylabel("share")
        axes.grid(alpha=0.3)
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
            times = sorted(one.ns.values())
            middle = 1e3 / median(times)
            reach = [[middle - 1e3 / times[-1]], [1e3 / times[0] - middle]]
            color = f"C{list(labels).index(one.design)}"
            axes.barh(height + number, middle, xerr=reach, color=color, capsize=2)
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
