# SPDX-License-Identifier: GPL-2.0
"""Where a design stops to scale, and what it is that has no time left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txsim.designs import Design
from txsim.simulate import Outcome

# A resource that is used for more of the time than this has none left.
_FULL = 0.95
# A curve is at its top where it has reached so much of it.
_TOP = 0.95

SENDERS, LOCK, HEAD = "the senders", "the lock", "the list's head"


def parts(outcome: Outcome) -> dict[str, float]:
    """What happens between one packet and the next while the lock is busy, in ns."""
    # What remains: to take the lock, to pass it on, to take what is on a list.
    rest = outcome.lock * outcome.ns - sum(outcome.spent.values())
    return {**outcome.spent, "the lock itself": max(rest, 0.0)}


def full(outcome: Outcome) -> tuple[str, ...]:
    """What has no time left. If there is nothing, it is the senders that could do more.

    A combiner has the lock all of the time: if it is busy, more senders do not help.
    The head of the list limits how many packets get that far, and where most of them
    are dropped, it is busy with those.
    """
    shares = ((LOCK, outcome.lock), (HEAD, outcome.head))
    return tuple(name for name, share in shares if share >= _FULL) or (SENDERS,)


def table(curves: Mapping[Design, Sequence[Outcome]]) -> list[str]:
    """One line per design: how far it gets with how many senders, and why not further."""
    width = 2 + max(len(design.label) for design in curves)
    lines = [
        f"{'':<{width}}{'top':>7}{'from':>6}{'end':>7}{'dropped':>9}"
        f"  {'no time left':<27}most of a packet's time"
    ]
    for design, curve in curves.items():
        top = max(one.pps for one in curve)
        # The fewest senders that get there.
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
