# SPDX-License-Identifier: GPL-2.0
"""Builds that are killed: make takes what they have half written for finished, by its time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from testbed.host.proc import Failed

_BEGUN = ".skbulk-begun"
# Seconds from the first write to a target to the end of its rule, on a slow machine.
_LONGEST_RULE = 120


@contextmanager
def mended(folder: Path) -> Iterator[None]:
    """Build in a folder. If the build before was killed, what it wrote last is removed first.

    A build that fails by itself has removed the target that failed.
    """
    begun = folder / _BEGUN
    if begun.exists():
        _remove_last(folder, begun.stat().st_mtime)
    begun.touch()
    try:
        yield
    except Failed:
        begun.unlink()
        raise
    begun.unlink()


def _remove_last(folder: Path, begun: float) -> None:
    times = {path: status.st_mtime for path in folder.rglob("*")
             if S_ISREG((status := path.lstat()).st_mode)}  # fmt: skip
    since = max(begun, max(times.values()) - _LONGEST_RULE)
    for path in (path for path, time in times.items() if time >= since and path.name != _BEGUN):
        path.unlink()
