# SPDX-License-Identifier: GPL-2.0
"""Runs tools with their output in a log, and reports failures."""

import errno
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from testbed.host.ui import Failure
from testbed.settings import child_environment

_ERROR_LINE = re.compile(r"\b(error|Error|ERROR|undefined|fatal|FAILED)\b")
# Each make above the one that failed adds a line, which tells nothing new; a file may be error.c.
_NOISE = re.compile(r"^\s*make(?:\[\d+\])?: \*\*\*|^  [A-Z]+ +(?:\[M\] +)?\S+$")
# cargo tells a chain of causes, the root in the last one.
_CAUSE = re.compile(r"^Caused by:\n(.+)", re.MULTILINE)
_HINTS = {
    os.strerror(errno.ENOSPC): "the disk is full: make clean removes builds, and "
    "XDG_CACHE_HOME=FOLDER puts them on another disk",
    "SSL certificate problem": "a proxy with a certificate of its own? Add that to "
    "/etc/ssl/certs/ca-certificates.crt (update-ca-certificates)",
}
# Seconds that a child gets to end by itself.
GRACE = 3.0


class Failed(Failure):
    """A tool ended by itself, with an error."""


def last_errors(log: Path, count: int = 8) -> list[str]:
    """The last lines of a log that look like errors, else its last lines."""
    text = text_of(log)
    lines = text.splitlines()
    found = [line for line in lines if _ERROR_LINE.search(line)]
    errors = [line for line in found if not _NOISE.search(line)] or found
    cause = _CAUSE.findall(text)[-1:]
    return [line[:240] for line in [*(errors or lines)[-count:], *cause]]


def text_of(path: Path) -> str:
    """The text of a file; empty if it is not there."""
    return path.read_text(errors="replace") if path.exists() else ""


def stop(child: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """End a child: ask, wait for `grace` seconds, then kill. Safe to call on a dead one."""
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def fresh(log: Path) -> Path:
    """A log without the lines of an earlier run."""
    log.unlink(missing_ok=True)
    return log


def start(
    command: Sequence[str | Path],
    out: IO[bytes],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program apart from the terminal, with its output in a file."""
    return subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
        stderr=subprocess.STDOUT, cwd=cwd, env=env, pass_fds=descriptors, start_new_session=True,
    )  # fmt: skip


def run(
    command: Sequence[str | Path],
    log: Path,
    *,
    what: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    check: bool = True,
    watch: Callable[[], None] | None = None,
) -> int:
    """Run a tool with its output appended to `log`.

    Raises `Failure` with the last errors unless it succeeds (or check=False).
    `watch` is called about every second while it runs.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        out.write(f"$ {' '.join(str(c) for c in command)}\n".encode())
        out.flush()
        try:
            child = start(command, out, cwd=cwd, env=child_environment(**(env or {})))
        except FileNotFoundError as error:
            raise Failure(
                f"{what}: the tool {command[0]} is not installed",
                "make doctor lists what is missing",
            ) from error
        began = time.monotonic()
        try:
            while (code := _end_within_a_second(child)) is None:
                if watch:
                    watch()
                if timeout and time.monotonic() - began > timeout:
                    raise Failure(f"{what}: no end after {timeout:.0f} s", f"log: {log}")
        except BaseException:
            _end_group(child)
            raise
    if check and code != 0:
        raise Failed(f"{what} failed", *last_errors(log), f"log: {log}", _hint(log))
    return code


def _hint(log: Path) -> str:
    """The way out of a failure that is none of the tool's."""
    text = text_of(log)
    return next((hint for sign, hint in _HINTS.items() if sign in text), "")


def _end_within_a_second(child: subprocess.Popen[bytes]) -> int | None:
    """The exit code, if there is one by then."""
    try:
        return child.wait(1.0)
    except subprocess.TimeoutExpired:
        return None


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End a build with all of its children."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, how)
        except ProcessLookupError:
            break
        try:
            child.wait(3.0)
        except subprocess.TimeoutExpired:
            continue
    child.wait()


def output(command: Sequence[str | Path], *, timeout: float = 30.0) -> str | None:
    """The output of a tool, or None if it is missing or fails."""
    try:
        done = capture(command, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def capture(
    command: Sequence[str | Path],
    *,
    stderr: int = subprocess.STDOUT,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end, whatever its exit code; errors are part of the output by default."""
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, cwd=cwd, env=env,
        timeout=timeout, text=True, errors="replace", check=False,
    )  # fmt: skip
