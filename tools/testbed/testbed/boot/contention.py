# SPDX-License-Identifier: GPL-2.0
"""How long processes have waited for a processor: what was measured meanwhile is disturbed."""

from pathlib import Path

_PROC = Path("/proc")


class Contention:
    """Adds up the running and waiting of all threads of some processes."""

    def __init__(self, processes: list[int], proc: Path = _PROC) -> None:
        self._processes = processes
        self._proc = proc
        # Nanoseconds of running and of waiting, by thread: those of ended threads stay.
        self._threads: dict[str, tuple[int, int]] = {}

    def look(self) -> None:
        """Read the figures of the threads that there are now."""
        for process in self._processes:
            for path in self._proc.glob(f"{process}/task/*/schedstat"):
                try:
                    ran, waited, _ = map(int, path.read_text().split())
                except (OSError, ValueError):
                    # The thread has just ended.
                    continue
                self._threads[path.parent.name] = ran, waited

    @property
    def share(self) -> float:
        """Waiting, as a share of the time in which a thread would have run."""
        ran = sum(ran for ran, _ in self._threads.values())
        waited = sum(waited for _, waited in self._threads.values())
        return waited / (ran + waited) if ran + waited else 0.0
