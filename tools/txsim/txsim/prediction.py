# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit-sim: rates of more senders, beside published ones.

Commit 100dfa74ca has the rates of 240 senders on 30 queues before and after the llist,
with threads placed by the scheduler and with each on a CPU of its own. Nothing is fitted
to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.bench.rows import Row
from txsim.fit import Costs, Figures, UnidentifiedError
from txsim.simulate import simulate

# Senders of one queue.
_CURVE = (1, 2, 3, 4, 8, 16, 32)
# Those of the commit, which are divided evenly here; its Mpps: placement, before, after.
_QUEUES, _SENDERS = 30, 240
_PUBLISHED = (("not pinned", 16.0, 29.0), ("pinned", 41.0, 57.0))


@dataclass(frozen=True)
class Rates:
    """Rates of one queue, in Mpps."""

    spinlock: float
    llist: float
    # The largest change of a rate by how the work of one sender is divided, relative.
    open: float

    @classmethod
    def of(cls, costs: Costs, senders: int) -> Rates:
        """Halfway between no own work and nothing but own work."""
        found, changes = [], []
        for listed in (False, True):
            none, every = (1e3 / simulate(costs, senders, share=share, listed=listed)
                           for share in (0.0, 1.0))  # fmt: skip
            found.append((none + every) / 2)
            changes.append(abs(none - every) / (none + every))
        return cls(found[0], found[1], max(changes))

    @property
    def gain(self) -> float:
        """How many times as fast the llist is."""
        return self.llist / self.spinlock


def _fitted(costs: Costs, figures: Figures) -> list[str]:
    """All parameters, and where they come from."""
    least = figures.spinlock[1] / figures.llist[1]
    return [
        f"{'fitted':<51}{'value':>9}  from",
        f"{'a packet of the only sender':<51}{costs.alone:>6.1f} ns  spinlock, 1 sender",
        f"{'  of it own work, work behind the lock':<51}{'unknown':>9}  not identifiable",
        f"{'adding a packet to the list, taking it':<51}{costs.listing:>6.1f} ns  "
        "llist less spinlock, 1 sender",
        f"{'a packet behind a lock that another CPU had':<51}{costs.moved:>6.1f} ns  "
        "spinlock, 2 senders",
        f"{'a packet of another CPU behind a lock that is kept':<51}{costs.foreign:>6.1f} ns  "
        "combiner, 2 senders",
        f"{'packets that two senders send per lock':<51}{costs.batch:>6.2f}     llist, 2 senders",
        "",
        "Without the combiner's figure the last two are not identifiable either: spinlock and",
        f"llist alone say that the gain of many senders is {least:.2f} or more.",
    ]


def _curve(rates: dict[int, Rates], spread: tuple[float, float]) -> list[str]:
    """Both rates by number of senders."""
    lines = ["", f"{'one queue, Mpps':<20}{'spinlock':>9}{'llist':>8}{'gain':>7}"]
    for senders, one in rates.items():
        name = f"{senders} sender{'s' if senders > 1 else ''}"
        name += ", fitted" if senders <= 2 else ""
        lines.append(f"{name:<20}{one.spinlock:>9.2f}{one.llist:>8.2f}{one.gain:>7.2f}")
    most = max(one.open for one in rates.values())
    return [
        *lines,
        "",
        f"The unknown changes rates by {most:.1%} at most. Rounds differ: by their extremes,",
        f"the gain of many senders is between {spread[0]:.2f} and {spread[1]:.2f}.",
    ]


def published(one: Rates) -> list[str]:
    """The commit's rates, the prediction, and its error."""
    head = f"{_SENDERS} senders, {_QUEUES} queues"
    lines = ["", f"{head:<32}{'published':>10}{'predicted':>11}{'error':>8}"]
    for placed, before, after in _PUBLISHED:
        for name, known, predicted, digits in (
            ("spinlock, Mpps", before, _QUEUES * one.spinlock, 1),
            ("llist, Mpps", after, _QUEUES * one.llist, 1),
            ("gain", after / before, one.gain, 2),
        ):
            lines.append(f"{f'{placed}: {name}':<32}{known:>10.{digits}f}{predicted:>11.{digits}f}"
                         f"{predicted / known - 1:>+8.0%}")  # fmt: skip
    return lines


def lines(rows: Sequence[Row]) -> list[str]:
    """The tables, from the rows of make bench ONLY=xmit."""
    try:
        figures = Figures.of(rows)
        costs = Costs.fit(figures)
    except UnidentifiedError as error:
        return [f"no prediction: {error}"]
    rates = {senders: Rates.of(costs, senders) for senders in _CURVE}
    return [
        *_fitted(costs, figures),
        *_curve(rates, figures.spread),
        *published(rates[_SENDERS // _QUEUES]),
    ]
