# SPDX-License-Identifier: GPL-2.0
"""Costs of this machine, from times of one and two senders.

Five figures give five costs, each by an equation of its own: nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.bench.rows import Row

# Settings of the benchmark: packets after which a combiner hands over, packets of a sender.
BOUND, WINDOW = 64, 256


class UnidentifiedError(Exception):
    """The figures contradict the model, or do not determine its costs."""


@dataclass(frozen=True)
class Figures:
    """Nanoseconds from one packet to the next, with one and with two senders."""

    spinlock: tuple[float, float]
    llist: tuple[float, float]
    # The lock is kept while there are packets, so batches are long with two senders already.
    combiner: float
    # The ratio of spinlock to combiner with two senders lies in between in every round.
    spread: tuple[float, float]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Figures:
        """Those in the rows of make bench ONLY=xmit."""
        found = {(row.bench, row.case): row for row in rows}
        try:
            alone, two = (found["xmit-lock", f"{case} llist"] for case in ("1 sender", "2 senders"))
            combiner = found["xmit", "2 senders"]
        except KeyError as error:
            raise UnidentifiedError(f"there is no row {error.args[0]}") from error
        times = (alone.reference, two.reference, alone.ours, two.ours, combiner.ours)
        known = [one for one in times if one]
        if len(known) != len(times) or not two.ratios or not combiner.ratios:
            raise UnidentifiedError("a row of one or two senders has no time")
        lock, locks, listed, lists, combined = known
        # The llist is in both rows.
        low, high = (end(two.ratios) * end(combiner.ratios) for end in (min, max))
        return cls((lock, locks), (listed, lists), combined, (low, high))


@dataclass(frozen=True)
class Costs:
    """Costs in nanoseconds, and a length.

    Own work is what senders do at the same time. How `alone` divides into own work and work
    behind the lock does not follow from the figures, so it is an argument of the simulation.
    """

    # A packet of the only sender.
    alone: float
    # Adding it to a list and taking it.
    listing: float
    # A packet behind the lock, if another CPU had the lock before.
    moved: float
    # A packet that another CPU has put on the list, behind a lock that was not passed on.
    foreign: float
    # Packets that two senders of a list send per lock.
    batch: float

    @classmethod
    def fit(cls, figures: Figures) -> Costs:
        """The costs with which the model has these figures."""
        alone, moved = figures.spinlock
        listing = max(figures.llist[0] - alone, 0.0)
        # One packet in BOUND pays for the lock.
        foreign = (figures.combiner * BOUND - moved) / (BOUND - 1)
        listed = figures.llist[1]
        # Own work is not more than all work of one sender, so two keep the lock busy.
        if not alone + listing <= foreign < listed <= moved:
            raise UnidentifiedError(
                f"one sender takes {alone + listing:.1f} ns per packet; two take {foreign:.1f} "
                f"when the lock is kept, {listed:.1f} with a list, {moved:.1f} with a lock: the "
                "model needs them in rising order"
            )
        # The first packet of a batch pays for the lock.
        return cls(alone, listing, moved, foreign, (moved - foreign) / (listed - foreign))
