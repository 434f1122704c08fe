# SPDX-License-Identifier: GPL-2.0
"""Where a design stops to scale, and what it is that has no time left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from txsim.designs import Design
from txsim.simulate import Outcome

# A resource that is used for more of the time than this has none left.
_FULL = 0.95
# A curve is at its top where it has reached so much of it.
_TOP = 0.95

SENDERS, LOCK, HEAD = "the senders", "the lock", "the list's head"


def parts(outcome: Outcome) -> dict[str, float]:
    """What happens between one packet and the next while the lock is busy, in ns."""
    spent = outcome.spent
    known = {
        "work on packets": spent.work,
        "calls": spent.calls,
        "doorbells": spent.doorbells,
        "lines of packets": spent.packet_lines,
        "lines behind the lock": spent.state_lines,
    }
    # What remains: to take the lock, to pass it on, to take what is on a list.
    rest = outcome.lock * outcome.ns - sum(known.values())
    return {**known, "the lock itself": max(rest, 0.0)}


def full(outcome: Outcome) -> tuple[str, ...]:
    """What has no time left. If there is nothing, it is the senders who could do more.

    Who works for the others has the lock all of the time: if it is busy, more
    senders do not help. The head of the list limits how many packets get that far,
    and where most of them are dropped, it is busy with those.
    """
    shares = ((LOCK, outcome.lock), (HEAD, outcome.head))
    return tuple(name for name, share in shares if share >= _FULL) or (SENDERS,)


@dataclass(frozen=True)
class Saturation:
    """The top of a curve, and its end."""

    design: Design
    # Packets per second at the top, and the least senders that get there.
    top: float
    senders: int
    # With most senders: packets per second, the share that is dropped, what has no
    # time left, and what happens between two packets.
    last: float
    dropped: float
    full: tuple[str, ...]
    costs: dict[str, float]

    @property
    def dearest(self) -> tuple[str, float]:
        """What takes most of the time between two packets, and its share."""
        name = max(self.costs, key=lambda one: self.costs[one])
        return name, self.costs[name] / max(sum(self.costs.values()), 1e-9)


def saturation(design: Design, curve: Sequence[Outcome]) -> Saturation:
    """Where the curve of a design stops to rise."""
    best = max(one.pps for one in curve)
    there = next(one for one in curve if one.pps >= _TOP * best)
    last = curve[-1]
    dropped = last.dropped / (1.0 + last.dropped)
    return Saturation(design, best, there.senders, last.pps, dropped, full(last), parts(last))


def table(found: Sequence[Saturation]) -> list[str]:
    """One line per design: how far it gets, and why not further."""
    width = 2 + max(len(one.design.label) for one in found)
    lines = [
        f"{'':<{width}}{'top':>7}{'from':>6}{'end':>7}{'dropped':>9}"
        f"  {'no time left':<27}most of a packet's time"
    ]
    for one in found:
        name, share = one.dearest
        lines.append(
            f"{one.design.label:<{width}}{one.top / 1e6:>7.2f}{one.senders:>6}"
            f"{one.last / 1e6:>7.2f}{one.dropped:>9.0%}  {', '.join(one.full):<27}"
            f"{name}, {share:.0%}"
        )
    return lines
