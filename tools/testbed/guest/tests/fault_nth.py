# SPDX-License-Identifier: GPL-2.0
"""Lets each memory allocation of an operation fail in turn.

The kernel counts the allocations of this thread down and fails the one that
fail-nth names. The operation runs again and again, each time with a later one
failing, until it needs fewer than that. It must end with an error of its own
or succeed regardless, and leave nothing behind: the next round shows that.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1

DEBUGFS = Path("/sys/kernel/debug")


class Interface:
    """Sets a network interface up and down, without another process."""

    def __init__(self, name: str) -> None:
        self.name = name.encode()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def _flags(self) -> int:
        answer = fcntl.ioctl(self.socket, SIOCGIFFLAGS, struct.pack("16sH22x", self.name, 0))
        return int(struct.unpack_from("H", answer, 16)[0])

    def do(self) -> None:
        """Up."""
        fcntl.ioctl(
            self.socket, SIOCSIFFLAGS, struct.pack("16sH22x", self.name, self._flags() | IFF_UP)
        )

    def undo(self) -> None:
        """Down."""
        fcntl.ioctl(
            self.socket, SIOCSIFFLAGS, struct.pack("16sH22x", self.name, self._flags() & ~IFF_UP)
        )


class Binding:
    """Binds a PCI device to its driver and unbinds it."""

    def __init__(self, device: str, driver: str) -> None:
        folder = Path("/sys/bus/pci/drivers") / driver
        self.device = device.encode()
        self.bind = os.open(folder / "bind", os.O_WRONLY)
        self.unbind = os.open(folder / "unbind", os.O_WRONLY)

    def do(self) -> None:
        """Probe."""
        os.write(self.bind, self.device)

    def undo(self) -> None:
        """Remove."""
        os.write(self.unbind, self.device)


def configure() -> None:
    """Lets every kind of allocation fail, silently, when fail-nth says so."""
    for kind in ("failslab", "fail_page_alloc"):
        for name, value in (("ignore-gfp-wait", "N"), ("verbose", "0"), ("probability", "0")):
            (DEBUGFS / kind / name).write_text(value)
    (DEBUGFS / "fail_page_alloc" / "min-order").write_text("0")


def rounds(subject: Interface | Binding, seconds: float, step: Callable[[int], int]) -> None:
    """Runs the operation with a later allocation failing each time."""
    handle = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
    nth, failed, survived = 1, 0, 0
    end = time.monotonic() + seconds
    while True:
        os.pwrite(handle, str(nth).encode(), 0)
        error = None
        try:
            subject.do()
        except OSError as problem:
            error = problem
        left = int(os.pread(handle, 16, 0).split(b"\0")[0])
        os.pwrite(handle, b"0", 0)
        if error is None:
            subject.undo()
            survived += 1
        else:
            failed += 1
        if left != 0:
            # The operation ended before allocation `nth`: all were tried.
            if error is not None:
                sys.exit(f"with nothing failing: {error}")
            print(f"{failed} failures reported, {survived - 1} survived, of {nth - 1} allocations")
            return
        if time.monotonic() > end:
            print(f"{failed} failures reported, {survived} survived, cut at allocation {nth}")
            return
        nth += step(nth)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Lets each allocation of an operation fail.")
    parser.add_argument("--seconds", type=float, default=30.0, help="stop after this time")
    parser.add_argument(
        "--dense", type=int, default=100000, help="from here on try only every seventh allocation"
    )
    kinds = parser.add_subparsers(required=True, dest="kind")
    kinds.add_parser("up").add_argument("interface")
    bind = kinds.add_parser("bind")
    bind.add_argument("device")
    bind.add_argument("driver")
    options = parser.parse_args()
    configure()
    subject = (
        Interface(options.interface)
        if options.kind == "up"
        else Binding(options.device, options.driver)
    )
    rounds(subject, options.seconds, lambda nth: 1 if nth < options.dense else 7)


if __name__ == "__main__":
    main()
