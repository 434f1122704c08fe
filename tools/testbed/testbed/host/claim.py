# SPDX-License-Identifier: GPL-2.0
"""The output folder belongs to one call of make at a time: two would mix logs and results."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.host.ui import Failure

# Verbs with a file of their own, as they keep a terminal busy and share no result with the
# others. All others share one.
_APART = ("debug", "fuzz", "model", "shell")


@contextmanager
def claimed(out: Path, verb: str, *, terminal: bool) -> Iterator[None]:
    """Hold the output folder for a verb; another holder is a `Failure`.

    Without a terminal, make shell writes the results of make run.
    """
    apart = verb in _APART and (terminal or verb != "shell")
    path = out / (f".lock-{verb}" if apart else ".lock")
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Failure(
            f"{out} cannot be written to: {error.strerror}",
            "logs and results go there: make it a writable folder, or use a clone of your own",
        ) from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 80, 0).decode(errors="replace").strip() or "another make"
            raise Failure(
                f"{holder} is running in this clone: make {verb} would mix its files in {out}",
                "wait for its end, or use a second clone: git clone . ../second",
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"make {verb}, begun at {time.strftime('%H:%M')},\n".encode(), 0)
        yield
    finally:
        os.close(file)
