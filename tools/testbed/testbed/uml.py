# SPDX-License-Identifier: GPL-2.0
"""Runs the kernel as a process: User-Mode Linux, at the machine's own speed.

The root file system is the one that this program runs in, through hostfs and
read-only. Otherwise a guest looks like one in QEMU: the same init, the same
places, a script, its output and its exit code; but there are no ports.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from testbed import dmesg, proc
from testbed.boot import (
    AFTER_RESULT,
    Follower,
    Job,
    Outcome,
    collect,
    exit_code,
    fill_share,
    tail,
)
from testbed.env import Env
from testbed.kernel import Kernel
from testbed.ui import Failure

_MEMORY = "768M"


class Uml:
    """One run of the kernel. The folder of a run goes away with it."""

    def __init__(self, env: Env, kernel: Kernel, tools: Path, name: str) -> None:
        self.env = env
        self.kernel = kernel
        self.tools = tools
        self.log = env.logs / f"console-{name}.log"
        self.log.unlink(missing_ok=True)

    def run(
        self,
        job: Job,
        on_line: Callable[[str], None] | None = None,
        on_copied: Callable[[], None] | None = None,
    ) -> Outcome:
        """Start the kernel, run the job's script, power off."""
        folder = Path(tempfile.mkdtemp(prefix="skbulk-uml-"))
        try:
            self._fill(folder, job)
            if on_copied:
                on_copied()
            return self._boot(folder, job, on_line)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def shell(self, job: Job, on_copied: Callable[[], None]) -> int:
        """Start it with the console on this terminal; returns its exit code."""
        folder = Path(tempfile.mkdtemp(prefix="skbulk-uml-"))
        try:
            self._fill(folder, job)
            on_copied()
            return subprocess.call(self._command(folder, job), env=_environment())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _fill(self, folder: Path, job: Job) -> None:
        self.kernel.copy_modules(folder / "modules")
        # A copy that is cheap where it can be: the image is 30 MB.
        shutil.copy2(self.kernel.image, folder / "linux")
        fill_share(self.env, folder / "job", job, self.kernel.config)
        for name in ("out", "result"):
            (folder / "job" / name).touch()

    def _command(self, folder: Path, job: Job) -> list[str]:
        words = [
            str(folder / "linux"),
            f"mem={_MEMORY}",
            "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
            f"init={self.env.clone}/tools/testbed/guest/init",
            # What the kernel does not know becomes a variable of init.
            "SKBULK_MACHINE=uml",
            f"SKBULK_CLONE={self.env.clone}",
            f"SKBULK_RUN={folder}",
            f"SKBULK_TOOLS={self.tools}",
            "con=null", "con0=fd:0,fd:1", "panic=-1", "loglevel=7",
            *job.kernel_words,
        ]  # fmt: skip
        if job.cpus > 1:
            # Processes of the guest must be threads of the host for that.
            words += ["seccomp=on", f"ncpus={job.cpus}"]
        return words

    def _boot(self, folder: Path, job: Job, on_line: Callable[[str], None] | None) -> Outcome:
        began = time.monotonic()
        with self.log.open("wb") as log:
            child = subprocess.Popen(
                self._command(folder, job),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,
            )
        lines = Follower(folder / "job/out", on_line)
        try:
            problem = _wait(child, folder / "job/result", job, lines, began)
        finally:
            proc.stop(child)
            lines.poll(last=True)
        seconds = time.monotonic() - began
        console = self.log.read_text(errors="replace")
        found = dmesg.complaints(console)
        code = exit_code(folder / "job/result")
        results = collect(self.env, folder / "job/results")
        if code is None or problem:
            raise Failure(
                problem or "the kernel ended before the script did",
                *[str(one) for one in found[:5]],
                *tail(self.log, 6),
                f"console: {self.log}",
            )
        return Outcome(code, lines.text, console, seconds, found, results)


def _environment() -> dict[str, str]:
    """The guest's memory is a file there; anywhere else it would be on a disk."""
    return {**os.environ, "TMPDIR": "/dev/shm"}


def _wait(
    child: subprocess.Popen[bytes], result: Path, job: Job, lines: Follower, began: float
) -> str | None:
    """Follow the run to its end; returns what went wrong, if anything."""
    ended: float | None = None
    while child.poll() is None:
        time.sleep(0.05)
        lines.poll()
        now = time.monotonic()
        if ended is None and result.stat().st_size:
            ended = now
        if ended is not None and now - ended > AFTER_RESULT:
            return "the kernel did not power off after the script's end"
        if now - began > job.timeout:
            return f"no end after {job.timeout:.0f} s"
    return None
