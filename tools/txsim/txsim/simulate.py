# SPDX-License-Identifier: GPL-2.0
"""One queue and its senders, each on a CPU of its own, simulated event by event."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass

from txsim.costs import Costs
from txsim.designs import Design
from txsim.engine import Cpu, Engine, Line, Lock

# Packets that are counted, and packets before those.
PACKETS = 6_000
_WARM_UP = 3_000
# If most packets are dropped, it would take hours to send enough.
_MOST_DROPPED = 20
# The variation of a sender's work per packet; without it, senders would run in step.
_SPREAD = 0.5


def bucket(value: float) -> int:
    """The largest power of two up to a value."""
    return 1 << max(int(value).bit_length() - 1, 0)


@dataclass
class Outcome:
    """The results of a run."""

    senders: int
    # Nanoseconds from one packet to the next, all senders together.
    ns: float
    # Shares of the time: the lock is held or passed on; the line of the list's head is
    # transferred; a sender works on its own packets.
    lock: float
    head: float
    think: float
    # The time behind the lock by kind, in nanoseconds per packet.
    spent: dict[str, float]
    doorbells: float
    contended: float
    dropped: float
    batches: Counter[int]
    latencies: Counter[int]

    @property
    def pps(self) -> float:
        """Packets per second."""
        return 1e9 / self.ns


class Queue:
    """A queue with the resource behind its lock."""

    def __init__(self, design: Design, senders: int, costs: Costs, packets: int) -> None:
        self.design, self.costs, self.senders = design, costs, senders
        self.engine = engine = Engine()
        passed_on = costs.handoff_lines + (costs.busylock_lines if design.busylock else 0.0)
        self.lock = Lock(engine, costs.transfer, passed_on * costs.transfer)
        self.head = Line(engine, costs.transfer, costs.atomic)
        self.list: list[int] = []
        self.busy = False
        self.last_holder: int | None = None
        self.flying = [0] * senders
        self.asleep: dict[int, Cpu] = {}
        self.random = random.Random(4)
        self.goal, self.done, self.start = packets, -_WARM_UP, 0.0
        self.reset()

    def reset(self) -> None:
        """Reset the counters."""
        self.start = self.engine.now
        self.spent: dict[str, float] = defaultdict(float)
        self.rings, self.dropped, self.thought = 0, 0, 0.0
        self.batches: Counter[int] = Counter()
        self.latencies: Counter[int] = Counter()
        self.head.busy = 0.0
        self.lock.reset()

    def run(self) -> Outcome:
        """Run until enough packets are sent."""
        for number in range(self.senders):
            start = self.random.uniform(0.0, self.costs.think)
            self.engine.wake(self._submit(number), start)
        self.engine.run()
        elapsed = self.engine.now - self.start
        # Packets of the warm-up count only if there are no others.
        packets = max(self.done if self.done > 0 else self.done + _WARM_UP, 1)
        lock = self.lock
        return Outcome(
            self.senders,
            elapsed / packets,
            min(lock.busy / elapsed, 1.0),
            min(self.head.busy / elapsed, 1.0),
            self.thought / elapsed / self.senders,
            {name: value / packets for name, value in self.spent.items()},
            self.rings / packets,
            lock.contended / packets,
            self.dropped / packets,
            self.batches,
            self.latencies,
        )

    def _submit(self, me: int) -> Cpu:
        """The body of a sender, until the run is over."""
        think = self.costs.think
        while True:
            while self.flying[me] >= self.costs.window:
                self.asleep[me] = self.engine.running
                yield None
            own = think * self.random.uniform(1.0 - _SPREAD, 1.0 + _SPREAD)
            self.thought += own
            yield own
            before = self.engine.now
            self.flying[me] += 1
            if self.design.combines is None:
                yield from self._locked(me, [me])
            else:
                yield from self._listed(me)
            self.latencies[bucket(self.engine.now - before)] += 1

    def _locked(self, me: int, batch: list[int]) -> Cpu:
        yield from self.lock.acquire(me)
        yield self.costs.lock + self._work(me, batch)
        self._finished(batch)
        self.lock.release()

    def _listed(self, me: int) -> Cpu:
        yield self.head.fetch(me) + self.costs.listed
        if self.busy and len(self.list) >= self.costs.limit:
            self.dropped += 1
            self.flying[me] -= 1
            if self.dropped > _MOST_DROPPED * self.goal:
                self.engine.stopped = True
            return
        self.list.append(me)
        if self.busy:
            return
        self.busy = True
        yield from self.lock.acquire(me)
        yield self.costs.lock
        worked = 0
        while True:
            last = not self.design.combines or worked >= self.costs.bound
            # One exchange of the head takes the whole list.
            yield self.head.fetch(me)
            batch, self.list = self.list, []
            if last or not batch:
                # The next CPU that adds a packet becomes the combiner.
                self.busy = False
            if batch:
                yield self._work(me, batch)
                self._finished(batch)
            if last or not batch:
                break
            worked += len(batch)
        self.lock.release()

    def _work(self, me: int, batch: list[int]) -> float:
        """The time to process a batch."""
        costs, packets = self.costs, len(batch)
        calls = 1 if self.design.batched else packets
        rings = calls if self.design.ring else 0
        others = sum(owner != me for owner in batch)
        moved = self.last_holder != me
        took = 0.0
        for name, ns in (
            ("work on packets", packets * costs.packet),
            ("calls", calls * costs.call),
            ("doorbells", rings * costs.doorbell),
            ("lines of packets", others * costs.packet_lines * costs.transfer),
            ("lines behind the lock", moved * costs.state_lines * costs.transfer),
        ):
            self.spent[name] += ns
            took += ns
        self.last_holder = me
        self.rings += rings
        self.batches[bucket(packets)] += 1
        return took

    def _finished(self, batch: list[int]) -> None:
        """Count a sent batch, and wake senders that waited for it."""
        for owner in batch:
            self.flying[owner] -= 1
            # At half of the window, like a socket, or each packet would wake a sender.
            if self.flying[owner] <= self.costs.window // 2 and owner in self.asleep:
                self.engine.wake(self.asleep.pop(owner))
        counted = self.done >= 0
        self.done += len(batch)
        if self.done >= 0 and not counted:
            self.done = 0
            self.reset()
        if self.done >= self.goal:
            self.engine.stopped = True


def simulate(design: Design, senders: int, costs: Costs, packets: int = PACKETS) -> Outcome:
    """Run a number of senders."""
    if senders < 1:
        raise ValueError(f"{senders} senders: there must be one at least")
    return Queue(design, senders, costs, packets).run()
