# SPDX-License-Identifier: GPL-2.0
"""A clock and a lock for simulated CPUs.

A CPU is a generator. It yields the nanoseconds for which it is busy, or None to sleep
until another CPU wakes it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator

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


class Lock:
    """A queued spinlock: waiting CPUs are served in order of arrival."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._held = False
        self._waiting: deque[Cpu] = deque()

    def acquire(self) -> Cpu:
        """Wait for the lock. Call it with yield from."""
        if self._held:
            self._waiting.append(self._engine.running)
            yield None
        self._held = True

    def release(self) -> None:
        """Pass it on to the CPU that has waited longest."""
        if self._waiting:
            self._engine.wake(self._waiting.popleft())
        else:
            self._held = False
