# SPDX-License-Identifier: GPL-2.0
"""Which curves the simulation gives, and how they are written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from txsim import saturation, seed
from txsim.costs import SEED, Costs
from txsim.designs import BATCH, COMBINER, DESIGNS, LLIST, LOCK, Design
from txsim.simulate import Outcome, simulate

# Senders on one queue.
ONE_QUEUE = (1, 2, 4, 8, 16, 32, 64, 128, 240, 480)
# Senders on the queues of the seed's machine.
MANY_QUEUES = (1, 2, 4, 8, 15, 30, 60, 120, 240, 480)
_QUEUED = (LOCK, LLIST, COMBINER, BATCH)

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Curve:
    """Rates of a design over the number of senders."""

    design: Design
    # Where lines come from, if there is more than one choice.
    placed: str
    senders: tuple[int, ...]
    rates: tuple[float, ...]

    def record(self) -> dict[str, Any]:
        """The curve as out/xmit-sim.json has it."""
        return {
            "design": self.design.name,
            "placed": self.placed,
            "senders": list(self.senders),
            "pps": [round(rate) for rate in self.rates],
        }


def one_queue(costs: Costs, tell: Tell) -> dict[Design, list[Outcome]]:
    """All designs on a single queue."""
    found: dict[Design, list[Outcome]] = {}
    for design in DESIGNS:
        tell(f"one queue, {design.label}")
        found[design] = [simulate(design, senders, costs) for senders in ONE_QUEUE]
    return found


def many_queues(checks: list[seed.Check], tell: Tell) -> list[Curve]:
    """The designs that feed a qdisc, on the queues and with the lines of the seed's machine."""
    found = []
    for one in checks:
        costs = replace(SEED, transfer=one.transfer)
        for design in _QUEUED:
            tell(f"{seed.QUEUES} queues, {one.measured.placed}, {design.label}")
            rates = tuple(seed.rate(design, costs, senders) for senders in MANY_QUEUES)
            found.append(Curve(design, one.measured.placed, MANY_QUEUES, rates))
    return found


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """A run as out/xmit-sim.json has it."""
    return {
        "senders": outcome.senders,
        "pps": round(outcome.pps),
        "busy": {"lock": round(outcome.lock, 3), "head": round(outcome.head, 3),
                 "senders": round(outcome.think, 3)},
        "ns": {name: round(value, 1) for name, value in saturation.parts(outcome).items()},
        "doorbells": round(outcome.doorbells, 4),
        "contended": round(outcome.contended, 4),
        "dropped": round(outcome.dropped, 3),
        "batches": dict(sorted(outcome.batches.items())),
        "latencies": dict(sorted(outcome.latencies.items())),
    }  # fmt: skip
