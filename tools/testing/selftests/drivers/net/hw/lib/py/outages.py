# SPDX-License-Identifier: GPL-2.0

"""
Which datagrams were lost, and which of them may be: those under way while a
request took the device, or a part of it, out of operation.
"""

import bisect
from dataclasses import dataclass, field

# A datagram that has not come back takes no longer than this, beyond the longest
# time of those that have.
MARGIN = 0.02


@dataclass
class Outage:
    """ A time in which datagrams may be late, or lost. """

    begin: float
    why: str
    loses: bool = True
    end: float = float("inf")


@dataclass
class Outages:
    """ All of them in their order, of which the last one may be going on. """

    all: list = field(default_factory=list)

    def begin(self, time, why, loses=True):
        """ Begin one, unless one is going on, which goes on with a further reason. """
        if not self.going_on:
            self.all.append(Outage(time, why, loses))
        elif loses and not self.all[-1].loses:
            self.all[-1].end = time
            self.all.append(Outage(time, why))

    def end(self, time):
        """ End it. """
        if self.going_on:
            self.all[-1].end = time

    @property
    def going_on(self):
        """ Whether one is going on. """
        return bool(self.all) and self.all[-1].end == float("inf")

    def longest(self):
        """ Return the longest one that has ended; None if there is none. """
        ended = [one for one in self.all if one.end != float("inf")]
        return max(ended, key=lambda one: one.end - one.begin, default=None)

    def losing(self):
        """ Return those in which datagrams may be lost. """
        return Outages([one for one in self.all if one.loses])

    def touch(self, begin, end):
        """ Whether there is one in some of this time. """
        # None begins before the end of the one before it.
        place = bisect.bisect_right(self.all, end, key=lambda one: one.begin)
        return place > 0 and self.all[place - 1].end >= begin


@dataclass(frozen=True)
class Datagram:
    """ The times at which a datagram was sent, reached the peer, and was back; 0 for never. """

    number: int
    sent: float
    turned: float = 0.0
    back: float = 0.0

    @property
    def took(self):
        """ The time that it was under way, if it came back. """
        return self.back - self.sent


@dataclass(frozen=True)
class Gap:
    """ Consecutive datagrams that were lost without an excuse. """

    first: Datagram
    last: Datagram
    # How many of them have not reached the peer, and how many got lost behind it.
    there: int
    again: int

    def __str__(self):
        count = self.there + self.again
        return (f"{count} from number {self.first.number} on, "
                f"sent in {self.last.sent - self.first.sent:.3f} s; "
                f"{self.there} did not reach the peer, {self.again} did not come back")


def slowest(datagrams, outages):
    """
    Return the datagram that was under way for the longest time, None if none came back. Those
    that were so during an outage do not count: packets may wait for its end.
    """
    return max((one for one in datagrams if one.back and not outages.touch(one.sent, one.back)),
               key=lambda one: one.took, default=None)


def lost(datagrams):
    """ Return the datagrams that have not come back. """
    return [one for one in datagrams if not one.back]


def unexcused(datagrams, outages):
    """ Return the lost datagrams for which there is no outage. """
    last = slowest(datagrams, outages)
    longest = MARGIN + (last.took if last else 0.0)
    losing = outages.losing()
    return [one for one in lost(datagrams) if not losing.touch(one.sent, one.sent + longest)]


def gaps(datagrams):
    """ Group lost datagrams with consecutive numbers. """
    groups = []
    for one in datagrams:
        if groups and groups[-1][-1].number + 1 == one.number:
            groups[-1].append(one)
        else:
            groups.append([one])
    return [Gap(group[0], group[-1], sum(not one.turned for one in group),
                sum(bool(one.turned) for one in group)) for group in groups]
