# SPDX-License-Identifier: GPL-2.0
"""One queue and its senders, each on a CPU of its own, simulated event by event.

With the spinlock, each sender takes the lock for its own packet. With the llist, it adds
the packet to a list; the sender that finds the list empty waits for the lock, takes all
packets that are on the list by then, and sends them.
"""

from __future__ import annotations

import random

from txsim.engine import Cpu, Engine, Lock
from txsim.fit import WINDOW, Costs

# Packets that are counted, and packets before those.
_PACKETS, _WARM_UP = 10_000, 2_000


class _Queue:
    """A queue with its lock, and the list in front of it."""

    def __init__(self, costs: Costs, senders: int, share: float, listed: bool) -> None:
        self.engine = Engine()
        self.lock = Lock(self.engine)
        self.list: list[int] = []
        self.last: int | None = None
        self.flying = [0] * senders
        self.asleep: dict[int, Cpu] = {}
        self.random = random.Random(4)
        self.sent, self.start = 0, 0.0
        self.listed = listed
        # Behind the lock: a packet of one's own, and the costs beyond that.
        held = (1 - share) * costs.alone
        self.gap = share * costs.alone + (costs.listing if listed else 0.0)
        self.held, self.moved, self.foreign = held, costs.moved - held, costs.foreign - held
        # With two senders, so many packets are added between taking the lock and the list.
        self.early = min((costs.batch - 1) * self.gap, self.moved)
        for number in range(senders):
            self.engine.wake(self._send(number), float(number))

    def _send(self, me: int) -> Cpu:
        """The body of a sender."""
        while True:
            while self.flying[me] >= WINDOW:
                self.asleep[me] = self.engine.running
                yield None
            # Senders of the same pace would run in step.
            yield self.gap * self.random.expovariate(1.0)
            self.flying[me] += 1
            if self.listed:
                self.list.append(me)
                if len(self.list) > 1:
                    continue
            yield from self.lock.acquire()
            if moved := self.last not in (me, None):
                yield self.early
            self.last, batch = me, [me]
            if self.listed:
                batch, self.list = self.list, []
            if moved:
                yield self.moved - self.early
            for owner in batch:
                yield self.held + (self.foreign if owner != me else 0.0)
                self._sent(owner)
            self.lock.release()

    def _sent(self, owner: int) -> None:
        """Count a packet, and wake its sender if that waits for it."""
        self.flying[owner] -= 1
        if owner in self.asleep:
            self.engine.wake(self.asleep.pop(owner))
        self.sent += 1
        if self.sent == _WARM_UP:
            self.start = self.engine.now
        self.engine.stopped = self.sent == _WARM_UP + _PACKETS

    def run(self) -> float:
        """Run until enough packets are sent; returns the nanoseconds of one."""
        self.engine.run()
        return (self.engine.now - self.start) / _PACKETS


def simulate(costs: Costs, senders: int, *, share: float, listed: bool) -> float:
    """The nanoseconds from one packet to the next, all senders together.

    They share a spinlock or a list. Own work is this share of `alone`.
    """
    if senders < 1:
        raise ValueError(f"{senders} senders: there must be one at least")
    return _Queue(costs, senders, share, listed).run()
