# SPDX-License-Identifier: GPL-2.0
"""A machine with Debian on its disk: boots it by Debian's kernel, or by its boot loader."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.boot import board
from testbed.boot.job import Follower, fresh_log
from testbed.boot.nicmodel import Model
from testbed.boot.vm import card_words
from testbed.env import Env
from testbed.host import proc
from testbed.host.ui import Failure

# MiB
_MEMORY = 1024
# Its partition begins behind the boot loader; KiB.
_SIZE, _BEFORE = 3 << 20, 1 << 10
_CONSOLE = "console=ttyS0"
_FILES = {
    "etc/fstab": "/dev/vda1 / ext4 errors=remount-ro 0 1\n",
    "etc/default/grub": (
        f'GRUB_TIMEOUT=0\nGRUB_TERMINAL=serial\nGRUB_CMDLINE_LINUX="{_CONSOLE}"\n'
    ),
    "etc/systemd/system/machine.service": (
        "[Service]\nType=exec\nExecStart=/root/machine\nStandardOutput=journal+console\n"
        "[Install]\nWantedBy=multi-user.target\n"
    ),
}
_WANTED = "etc/systemd/system/multi-user.target.wants/machine.service"


@dataclass(frozen=True)
class Machine:
    """A disk, and the files of Debian's kernel that are on it."""

    env: Env
    disk: Path
    kernel: Path
    initramfs: Path

    def boot(
        self, name: str, seconds: float, loader: bool = True, model: Model | None = None
    ) -> Boot:
        """Start it, by its boot loader or by Debian's kernel."""
        return Boot(self, name, seconds, loader, model)


def make(env: Env, root: Path, packages: Sequence[Path], program: Path, place: Path) -> Machine:
    """A disk with a copy of a root file system, which runs a program when it has booted."""
    tree, disk, log = place / "root", place / "disk", env.logs / "machine-disk.log"
    proc.run(["cp", "-a", root, tree], log, what="copying the root file system")
    (tree / "root/packages").mkdir()
    for path in packages:
        shutil.copy(path, tree / "root/packages")
    shutil.copy(program, tree / "root/machine")
    for name, text in _FILES.items():
        (tree / name).write_text(text)
    (tree / _WANTED).symlink_to("/etc/systemd/system/machine.service")
    libraries = {"LD_LIBRARY_PATH": str(tree / "usr/lib/x86_64-linux-gnu")}
    proc.run(["truncate", "-s", f"{_SIZE}K", disk], log, what="making a disk")
    proc.run(["sh", "-c", f'echo {_BEFORE}KiB,,L,\\* | "$0" "$1"', tree / "sbin/sfdisk", disk], log,
             what="its partition", env=libraries)  # fmt: skip
    proc.run([tree / "sbin/mke2fs", "-q", "-t", "ext4", "-E", f"offset={_BEFORE << 10}", "-d", tree,
              disk, f"{_SIZE - _BEFORE}k"], log, what="its file system", env=libraries)  # fmt: skip
    files = []
    for pattern in ("vmlinuz-*", "initrd.img-*"):
        files.append(shutil.copy(next((tree / "boot").glob(pattern)), place))
    shutil.rmtree(tree)
    return Machine(env, disk, *files)


class Boot:
    """A boot, as a context; the lines of its program are read as they come."""

    def __init__(
        self, machine: Machine, name: str, seconds: float, loader: bool, model: Model | None
    ) -> None:
        self._env = machine.env
        self.console = fresh_log(self._env, f"console-{name}")
        self._report = fresh_log(self._env, f"report-{name}")
        self._seconds = seconds
        self._lines: list[str] = []
        accel = self._env.settings.text("ACCEL") or "tcg"
        self._command = [
            *board.of("perf").shared(accel, 2, _MEMORY),
            "-drive", f"file={machine.disk},format=raw,if=virtio,cache=unsafe",
            "-serial", f"file:{self.console}", "-serial", f"file:{self._report}",
            *(card_words(model) if model else ()),
        ]  # fmt: skip
        if not loader:
            self._command += ["-kernel", str(machine.kernel), "-initrd", str(machine.initramfs),
                              "-append", f"root=/dev/vda1 rw {_CONSOLE}"]  # fmt: skip

    def __enter__(self) -> Boot:
        for path in (self.console, self._report):
            path.touch()
        self._follower = Follower(self._report, self._lines.append)
        with (self._env.logs / "qemu-machine.log").open("wb") as log:
            self._child = proc.start(self._command, log)
        self._end = time.monotonic() + self._seconds
        return self

    def __exit__(self, *_: object) -> None:
        proc.stop(self._child)

    def _wait(self) -> None:
        self._env.check_time()
        if time.monotonic() > self._end:
            raise Failure(f"no end after {self._seconds:.0f} s", f"console: {self.console}")
        time.sleep(0.2)

    def lines(self) -> list[str]:
        """The lines of the program, until it is ready or the machine is off."""
        while "ready" not in self._lines and self._child.poll() is None:
            self._wait()
            self._follower.poll()
        self._follower.poll(last=True)
        return self._lines

    def values(self, name: str) -> list[str]:
        """The values that the program has reported under a name."""
        found = (line.partition(" ") for line in self._lines)
        return [value for word, _, value in found if word == name]

    def power_off(self) -> None:
        """Wait until the machine is off."""
        while self._child.poll() is None:
            self._wait()
