# SPDX-License-Identifier: GPL-2.0
"""A clock, and what CPUs share: cache lines and locks.

A CPU is a generator. It yields how many nanoseconds it is busy, or None to sleep
until another CPU wakes it. What it shares it asks first: a Line says how long it
takes to get there, a Lock lets it wait for its turn.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator

# Yields nanoseconds, or None to sleep.
Cpu = Generator[float | None, None, None]


class Engine:
    """Lets CPUs run in the order of time."""

    # The CPU whose turn it is.
    running: Cpu

    def __init__(self) -> None:
        self.now = 0.0
        # Lets run() return when the CPU whose turn it is has yielded.
        self.stopped = False
        self._due: list[tuple[float, int, Cpu]] = []
        self._number = 0

    def wake(self, cpu: Cpu, after: float = 0.0) -> None:
        """Let a CPU go on, some nanoseconds from now."""
        # The number keeps those that are due at the same time in order.
        self._number += 1
        heapq.heappush(self._due, (self.now + after, self._number, cpu))

    def run(self) -> None:
        """Run until a CPU sets `stopped`, or all of them sleep."""
        while self._due and not self.stopped:
            self.now, _, self.running = heapq.heappop(self._due)
            delay = next(self.running)
            if delay is not None:
                self.wake(self.running, delay)


class Line:
    """A cache line that CPUs write to: it is with one of them at a time.

    CPUs that want it get it one after the other, as the directory of a machine hands
    it out. The CPU that has it already pays for the operation alone.
    """

    def __init__(self, engine: Engine, transfer: float, hit: float) -> None:
        self._engine = engine
        self._transfer = transfer
        self._hit = hit
        self._owner: int | None = None
        self._free = 0.0
        # How long it was on its way or written to.
        self.busy = 0.0

    def fetch(self, cpu: int) -> float:
        """How long a CPU takes that wants to write now."""
        now = self._engine.now
        cost = self._hit if self._owner == cpu else self._transfer + self._hit
        self._owner = cpu
        self._free = max(now, self._free) + cost
        self.busy += cost
        return self._free - now


class Lock:
    """A queued spinlock: waiting CPUs are served in order of arrival."""

    def __init__(self, engine: Engine, transfer: float, handoff: float) -> None:
        self._engine = engine
        self._word = Line(engine, transfer, 0.0)
        self._handoff = handoff
        self._held = False
        self._waiting: deque[Cpu] = deque()
        self._since = 0.0
        self._busy = 0.0
        self.contended = 0

    @property
    def busy(self) -> float:
        """For how long a CPU had it, or it was on its way to the next one."""
        return self._busy + (self._engine.now - self._since if self._held else 0.0)

    def reset(self) -> None:
        """Forget what was counted so far."""
        self._since = self._engine.now
        self._busy, self.contended = 0.0, 0

    def acquire(self, cpu: int) -> Cpu:
        """Wait until the lock is ours. To be called with yield from."""
        yield self._word.fetch(cpu)
        if not self._held:
            self._held = True
            self._since = self._engine.now
            return
        self.contended += 1
        self._waiting.append(self._engine.running)
        yield None

    def release(self) -> None:
        """Give it to the CPU that waits longest."""
        if self._waiting:
            # On its way no CPU can use what it protects: that counts as busy.
            self._engine.wake(self._waiting.popleft(), self._handoff)
        else:
            self._busy += self._engine.now - self._since
            self._held = False
