# SPDX-License-Identifier: GPL-2.0
"""The simulation against published measurements on 480 hyperthreads.

Commit 100dfa74ca has the rates of 240 senders on 30 queues before and after the
lockless list, with threads placed by the scheduler and with each on a CPU of its
own. It does not contain the time of a cache line transfer, which depends on the
placement. So the two rates *before* give the two transfer times, and the two rates
*after* are predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from txsim.costs import SEED, Costs
from txsim.designs import LLIST, LOCK, Design
from txsim.fit import solve
from txsim.simulate import simulate

QUEUES = 30
SENDERS = 240
# Senders of a curve.
CURVE = (1, 2, 4, 8, 15, 30, 60, 120, 240, 480)
_PACKETS = 3_000


# Rates of that commit, in packets per second: placement, before, after.
_MEASURED = (("threads not pinned", 16e6, 29e6), ("threads pinned", 41e6, 57e6))


@dataclass(frozen=True)
class Check:
    """A prediction and the measurement."""

    placed: str
    before: float
    after: float
    transfer: float
    predicted: float

    @property
    def error(self) -> float:
        """The relative error of the prediction."""
        return self.predicted / self.after - 1.0


def rate(design: Design, costs: Costs, senders: int = SENDERS) -> float:
    """Packets per second of all queues, which are independent."""
    alone, more = divmod(senders, QUEUES)
    rates = {n: simulate(design, n, costs, _PACKETS).pps for n in {alone, alone + bool(more)} if n}
    return (QUEUES - more) * rates.get(alone, 0.0) + more * rates.get(alone + 1, 0.0)


def check(costs: Costs = SEED) -> list[Check]:
    """Fit the transfer time to the rate before, predict the one after."""

    def ns(transfer: float) -> float:
        return 1e9 / rate(LOCK, replace(costs, transfer=transfer))

    found = []
    for placed, before, after in _MEASURED:
        transfer = solve(ns, 1e9 / before, 1.0, 1_000.0)
        predicted = rate(LLIST, replace(costs, transfer=transfer))
        found.append(Check(placed, before, after, transfer, predicted))
    return found


def sensitivity(costs: Costs = SEED, by: float = 0.25) -> list[tuple[str, list[Check]]]:
    """The same with each important estimate changed by a share, both ways."""
    found = []
    for name in ("packet", "packet_lines", "state_lines", "handoff_lines", "busylock_lines"):
        for sign in (-1, 1):
            value = getattr(costs, name) * (1 + sign * by)
            found.append((f"{name} {sign * by:+.0%}", check(costs.with_times(**{name: value}))))
    return found


def table(checks: list[Check]) -> list[str]:
    """Fitted, predicted and measured values."""
    lines = [f"{'':<22}{'before':>8}{'transfer':>10}{'after':>7}{'predicted':>11}{'error':>8}"]
    for one in checks:
        lines.append(
            f"{one.placed:<22}{one.before / 1e6:>8.1f}{one.transfer:>7.0f} ns"
            f"{one.after / 1e6:>7.1f}{one.predicted / 1e6:>11.1f}{one.error:>+8.1%}"
        )
    return lines


def sensitivity_table(found: list[tuple[str, list[Check]]]) -> list[str]:
    """The errors of predictions with one estimate changed."""
    lines = [f"{'estimate':<24}" + "".join(f"{placed:>22}" for placed, *_ in _MEASURED)]
    for name, checks in found:
        lines.append(f"{name:<24}" + "".join(f"{one.error:>+22.0%}" for one in checks))
    return lines
