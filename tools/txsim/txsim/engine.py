# SPDX-License-Identifier: GPL-2.0
"""A clock, and the shared resources of CPUs: cache lines and locks.

A CPU is a generator. It yields the nanoseconds for which it is busy, or None to sleep
until another CPU wakes it. A Line returns the time that an access takes, a Lock makes
the CPU wait for its turn.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator

# Yields nanoseconds, or None to sleep.
Cpu = Generator[float | None, None, None]


class Engine:
    """Runs CPUs in the order of time."""

    # The current CPU.
    running: Cpu

    def __init__(self) -> None:
        self.now = 0.0
        # Makes run() return when the current CPU has yielded.
        self.stopped = False
        self._due: list[tuple[float, int, Cpu]] = []
        self._number = 0

    def wake(self, cpu: Cpu, after: float = 0.0) -> None:
        """Resume a CPU, some nanoseconds from now."""
        # The number orders CPUs that are due at the same time.
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
    """A cache line that CPUs write to: one of them owns it at a time.

    CPUs get it one after the other, as from the directory of a machine. Its owner pays
    for the operation alone.
    """

    def __init__(self, engine: Engine, transfer: float, hit: float) -> None:
        self._engine = engine
        self._transfer = transfer
        self._hit = hit
        self._owner: int | None = None
        self._free = 0.0
        # The time of transfers and writes.
        self.busy = 0.0

    def fetch(self, cpu: int) -> float:
        """The time that a CPU needs to write now."""
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
        """The time for which it was held or passed on."""
        return self._busy + (self._engine.now - self._since if self._held else 0.0)

    def reset(self) -> None:
        """Reset the counters."""
        self._since = self._engine.now
        self._busy, self.contended = 0.0, 0

    def acquire(self, cpu: int) -> Cpu:
        """Wait for the lock. Call it with yield from."""
        yield self._word.fetch(cpu)
        if not self._held:
            self._held = True
            self._since = self._engine.now
            return
        self.contended += 1
        self._waiting.append(self._engine.running)
        yield None

    def release(self) -> None:
        """Pass it on to the CPU that has waited longest."""
        if self._waiting:
            # Passing it on counts as busy: no CPU can use the protected resource.
            self._engine.wake(self._waiting.popleft(), self._handoff)
        else:
            self._busy += self._engine.now - self._since
            self._held = False
