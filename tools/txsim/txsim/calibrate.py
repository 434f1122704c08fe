# SPDX-License-Identifier: GPL-2.0
"""Costs of this machine, from measurements of the benchmark with 1 and 2 senders.

The parameters of the run (costs of the sink and the senders) and the time of a
cache line transfer are known. Four more costs come from four figures: a lock and a
list that no other CPU uses (1 sender), and the lines that follow a lock and a
packet to the other CPU (2 senders). All other figures with 2 senders are
predictions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from testbed.host.ui import Failure
from txsim.costs import Costs
from txsim.designs import DESIGNS, LLIST, LOCK, Design
from txsim.fit import solve
from txsim.simulate import simulate

_PACKETS = 3_000
# An upper limit on numbers of lines.
_MOST_LINES = 30.0
# The share of each of the two atomic operations in the time to add a packet to a
# local list and remove it.
_ATOMIC = 0.4

# The designs and numbers of senders whose figures are used.
USED = (LOCK, LLIST)
_SENDERS = (1, 2)
# Nanoseconds per packet, by name of the design and number of senders.
Figures = Mapping[tuple[str, int], float]
# Design, senders, nanoseconds as measured and as simulated.
Prediction = tuple[Design, int, float, float]


def _fit(design: Design, costs: Costs, name: str, wanted: float) -> Costs:
    """The costs with one of them fitted to a measured time of two senders."""

    def ns(value: float) -> float:
        return simulate(design, 2, costs.with_times(**{name: value}), _PACKETS).ns

    return costs.with_times(**{name: solve(ns, wanted, 0.0, _MOST_LINES)})


def calibrate(parameters: Mapping[str, float], figures: Figures) -> Costs:
    """The costs with which the simulation reproduces the measurements."""
    given = ("transfer", "think", "call", "packet", "doorbell")
    costs = Costs().with_times(**{name: float(parameters[name]) for name in given})
    alone = costs.think + costs.call + costs.packet
    lock = max(figures[LOCK.name, 1] - alone, 0.0)
    listing = max(figures[LLIST.name, 1] - alone - lock, 0.0)
    costs = replace(costs, lock=lock, busylock_lines=0.0, atomic=_ATOMIC * listing,
                    listed=(1 - 2 * _ATOMIC) * listing)  # fmt: skip
    costs = _fit(LOCK, costs, "state_lines", figures[LOCK.name, 2])
    return _fit(LLIST, costs, "packet_lines", figures[LLIST.name, 2])


def predictions(costs: Costs, figures: Figures) -> list[Prediction]:
    """The simulated value of each figure with 1 and 2 senders."""
    return [
        (design, senders, figures[design.name, senders],
         simulate(design, senders, costs, _PACKETS).ns)
        for design, senders in product(DESIGNS, _SENDERS) if (design.name, senders) in figures
    ]  # fmt: skip


def table(found: list[Prediction]) -> list[str]:
    """Measured and simulated, side by side."""
    lines = [f"{'':<38}{'senders':>8}{'measured':>10}{'simulated':>11}"]
    for design, senders, measured, predicted in found:
        error = "calibrated with" if design in USED else f"{predicted / measured - 1:+.0%}"
        lines.append(f"{design.label:<38}{senders:>8}{measured:>10.1f}{predicted:>11.1f}  {error}")
    return lines


def read(path: Path) -> tuple[dict[str, float], dict[tuple[str, int], float]]:
    """The parameters and figures in a file of the benchmark."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        figures = {(str(one["design"]), int(one["senders"])): float(one["ns"])
                   for one in content["figures"]}  # fmt: skip
        parameters = {str(name): float(value) for name, value in content["parameters"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(
            f"{path} is not a result of make bench ONLY=xmit ({error!r})",
            "remove it, or run make bench ONLY=xmit to write it again",
        ) from error
    for design, senders in product(USED, _SENDERS):
        if (design.name, senders) not in figures:
            raise Failure(
                f"{path} has no figure of {design.name} with {senders} senders",
                "run make bench ONLY=xmit to write it again",
            )
    return parameters, figures
