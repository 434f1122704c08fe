# SPDX-License-Identifier: GPL-2.0
"""The point at which a design stops scaling, and its saturated resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txsim.designs import Design
from txsim.simulate import Outcome

# A resource that is busy for a larger share of the time is saturated.
_FULL = 0.95
# A curve is at its top from this share of its maximum on.
_TOP = 0.95

SENDERS, LOCK, HEAD = "the senders", "the lock", "the list's head"


def parts(outcome: Outcome) -> dict[str, float]:
    """The parts of the time from one packet to the next while the lock is busy, in ns."""
    # The rest: taking the lock, passing it on, taking a list.
    rest = outcome.lock * outcome.ns - sum(outcome.spent.values())
    return {**outcome.spent, "the lock itself": max(rest, 0.0)}


def full(outcome: Outcome) -> tuple[str, ...]:
    """The saturated resources; if there is none, more senders could send more.

    A combiner holds the lock all of the time: if it is busy, more senders do not help.
    The head of the list limits the packets that get that far, and where most of them
    are dropped, it is busy with those.
    """
    shares = ((LOCK, outcome.lock), (HEAD, outcome.head))
    return tuple(name for name, share in shares if share >= _FULL) or (SENDERS,)


def table(curves: Mapping[Design, Sequence[Outcome]]) -> list[str]:
    """A line per design: its maximum, the senders needed for it, and the saturated resource."""
    width = 2 + max(len(design.label) for design in curves)
    lines = [
        f"{'':<{width}}{'top':>7}{'from':>6}{'end':>7}{'dropped':>9}"
        f"  {'no time left':<27}most of a packet's time"
    ]
    for design, curve in curves.items():
        top = max(one.pps for one in curve)
        # The smallest number of senders at the top.
        first = next(one.senders for one in curve if one.pps >= _TOP * top)
        last = curve[-1]
        dropped = last.dropped / (1.0 + last.dropped)
        costs = parts(last)
        name = max(costs, key=lambda one: costs[one])
        share = costs[name] / max(sum(costs.values()), 1e-9)
        lines.append(
            f"{design.label:<{width}}{top / 1e6:>7.2f}{first:>6}{last.pps / 1e6:>7.2f}"
            f"{dropped:>9.0%}  {', '.join(full(last)):<27}{name}, {share:.0%}"
        )
    return lines
