# SPDX-License-Identifier: GPL-2.0
"""Output for the user: steps with progress and elapsed time, and errors.

Concurrent work runs in lanes, a process each: their lines begin with the lane's name.
"""

from __future__ import annotations

import difflib
import sys
import threading
import time
from collections.abc import Iterable

# Since the machine's start, as in /proc/uptime: other processes know this clock, too.
_start = time.clock_gettime(time.CLOCK_BOOTTIME)
# Seconds between the progress lines of a step without a terminal.
_QUIET_INTERVAL = 10.0
# The same with several lanes.
_LANE_INTERVAL = 30.0
_lane = ""


class Failure(Exception):
    """An error that the user can act on: the problem, and hints at a way out."""

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(message)
        self.hints = hints

    @property
    def on_one_line(self) -> str:
        """The message and the hints."""
        return " | ".join([str(self), *filter(None, self.hints)])


def similar(word: str, known: Iterable[str], before: str = "") -> list[str]:
    """A hint at the name that was meant, if one is similar; `before` stands in front of it."""
    return [f"did you mean {before}{one}?" for one in difflib.get_close_matches(word, [*known], 1)]


class OutOfTime(Failure):
    """There was no time left for it: neither a success nor an error."""

    def __init__(self) -> None:
        super().__init__("no time was left")


def enter_lane(name: str) -> None:
    """Begin the lines of this process with a name from now on."""
    global _lane
    _lane = name


def say(*lines: str) -> None:
    """Print lines at once."""
    for text in lines:
        # One write per line, so that lines of two lanes do not mix.
        sys.stdout.write(f"{_lane:<6}| {text}\n" if _lane else f"{text}\n")
        sys.stdout.flush()


def clock(seconds: float) -> str:
    """Format a duration: 7.3 s, 4 m 05 s."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} m {int(seconds) % 60:02d} s"


def begin_at(uptime: float) -> None:
    """Count from a beginning before that of this program, in seconds of uptime."""
    global _start
    _start = uptime


def since_start() -> float:
    """Seconds since the verb began, the making of the build root included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - _start


class Step:
    """A step of work: prints its name, its progress, and its duration.

    Use it as a context manager; `detail` may be set while it runs. A step that runs beside
    another one leaves the progress lines to that.
    """

    def __init__(self, name: str, *, beside: bool = False) -> None:
        self.name = name
        self._beside = beside
        self.detail = ""
        self.began = time.monotonic()
        self._done = threading.Event()
        # Lanes cannot share the last line of a terminal.
        self._tty = sys.stdout.isatty() and not _lane
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    @property
    def elapsed(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self.began

    def __enter__(self) -> Step:
        say(f"==> {self.name}  [at {clock(since_start())}]")
        if not self._beside:
            self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        if not self._beside:
            self._ticker.join()
        how = "done in" if kind is None else "failed after"
        if kind is KeyboardInterrupt:
            how = "interrupted after"
        tail = f": {self.detail}" if self.detail and kind is None else ""
        name = f"{self.name}: " if self._beside else ""
        say(f"    {name}{how} {clock(self.elapsed)}{tail}")

    def _tick(self) -> None:
        interval = 1.0 if self._tty else _LANE_INTERVAL if _lane else _QUIET_INTERVAL
        while not self._done.wait(interval):
            line = f"    {self.name}: {clock(self.elapsed)}"
            if self.detail:
                line += f", {self.detail}"
            if self._tty:
                sys.stdout.write(f"\r\033[K{line[:118]}")
                sys.stdout.flush()
            else:
                say(line)
        if self._tty:
            sys.stdout.write("\r\033[K")
            sys.stdout.flush()
