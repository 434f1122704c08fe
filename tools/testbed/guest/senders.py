# SPDX-License-Identifier: GPL-2.0
"""Senders of the transmission benchmarks: pktgen's kernel threads, or UDP sockets.

Both send as fast as they can until they are stopped, and then report the number of
packets, and the number that the stack refused.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from udp_batches import BATCH, PAYLOAD, messages, send_batch

PKTGEN = Path("/proc/net/pktgen")
BUILD = Path("/mnt/build")
# With the headers of UDP, IPv4 and Ethernet.
FRAME = PAYLOAD + 8 + 20 + 14
# More than the datagrams of two calls need: a sender does not sleep until one has left.
SEND_BUFFER = 1 << 21
# From asm-generic/socket.h; Python lacks it.
SO_SNDBUFFORCE = 32
# Seconds for a sender to stop, and for its packets to leave.
PATIENCE = 10.0


class Wrong(Exception):
    """An error that makes a measurement worthless."""


def run(*words: str) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def load(module: str) -> None:
    """Load a module of this kernel, unless it is loaded."""
    if Path(f"/sys/module/{module}").exists():
        return
    file = next(BUILD.rglob(f"{module}.ko"), None)
    if file is None:
        raise Wrong(f"this kernel was built without the module {module}")
    run("insmod", str(file))


def wait_for(true: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait some seconds for a condition."""
    deadline = time.monotonic() + patience
    while not true():
        if time.monotonic() > deadline:
            raise Wrong(f"after {patience:.0f} s, {what}")
        time.sleep(0.005)


@dataclass(frozen=True)
class Sent:
    """The counts of the senders."""

    # Packets offered to the stack.
    attempts: int
    # Packets that the stack refused with an error.
    refused: int


class Senders(Protocol):
    """Some senders, which run between start() and stop()."""

    def start(self) -> None:
        """Start sending."""

    def stop(self) -> Sent:
        """Stop sending; returns the counts since the start."""


def processors() -> list[int]:
    """The processors for senders, in order."""
    return sorted(os.sched_getaffinity(0))


class Pktgen:
    """Kernel threads, each on a processor of its own, that create a new packet each time.

    They pass packets to a device's queueing discipline without any limit.
    """

    # The last configuration of the threads: configuring takes longer than measuring.
    _told: tuple[Any, ...] = ()
    # The thread that started them: it ends some time after all of them have stopped.
    _starter: threading.Thread | None = None

    def __init__(self, device: str, senders: int, mac: str, address: str) -> None:
        load("pktgen")
        here = processors()
        if senders > len(here):
            raise Wrong(f"pktgen has a thread per processor: {senders} of {len(here)}")
        self._places = [(cpu, f"{device}@{cpu}") for cpu in here[:senders]]
        self._lines = (
            "count 0", "delay 0", "clone_skb 0", "flag !SHARED", "flag NO_TIMESTAMP",
            f"pkt_size {FRAME}", f"dst {address}", f"dst_mac {mac}",
            "queue_map_min 0", "queue_map_max 0", "xmit_mode queue_xmit",
        )  # fmt: skip

    def _tell(self) -> None:
        wanted = (*self._places, *self._lines)
        if Pktgen._told == wanted:
            return
        Pktgen._told = ()
        tell(PKTGEN / "pgctrl", "reset")
        for cpu, name in self._places:
            tell(PKTGEN / f"kpktgend_{cpu}", f"add_device {name}")
            # A flow for each sender, as with a socket each.
            ports = [f"udp_{end}_{edge} {9000 + cpu}" for end in ("src", "dst")
                     for edge in ("min", "max")]  # fmt: skip
            for line in (*self._lines, *ports):
                tell(PKTGEN / name, line)
        Pktgen._told = wanted

    def start(self) -> None:
        """Start the threads. They begin together, a moment later."""
        if Pktgen._starter is not None:
            Pktgen._starter.join(PATIENCE)
        self._tell()
        Pktgen._starter = threading.Thread(
            target=tell, args=(PKTGEN / "pgctrl", "start"), name="pktgen", daemon=True
        )
        Pktgen._starter.start()
        wait_for(lambda: self._all_say("Starting"), "pktgen had not started")

    def stop(self) -> Sent:
        """Stop the threads, and count."""
        tell(PKTGEN / "pgctrl", "stop")
        wait_for(lambda: self._all_say("OK"), "pktgen had not stopped")
        found = [pktgen_counts(self._state(name)) for _, name in self._places]
        refused = sum(errors for _, errors in found)
        return Sent(sum(taken for taken, _ in found) + refused, refused)

    def _all_say(self, word: str) -> bool:
        return all(f"Result: {word}" in self._state(name) for _, name in self._places)

    @staticmethod
    def _state(name: str) -> str:
        return (PKTGEN / name).read_text()


def pktgen_counts(text: str) -> tuple[int, int]:
    """The sent and the refused packets of a thread that has ended."""
    counts = re.search(r"pkts-sofar: (\d+)\s+errors: (\d+)", text)
    if counts is None or "Result: OK" not in text:
        raise Wrong(f"pktgen: {text.strip().splitlines()[-1]}")
    return int(counts[1]), int(counts[2])


def tell(path: Path, line: str) -> None:
    """Write a line to a control file."""
    try:
        path.write_text(line + "\n")
    except OSError as error:
        raise Wrong(f"{path}: {line}: {error.strerror}") from error


class Udp:
    """Processes with a socket each, on the processors in turn, that send batches."""

    def __init__(self, device: str, senders: int, address: str) -> None:
        self._device, self._senders, self._address = device, senders, address
        self._children: list[int] = []
        self._before = (0, 0)

    def start(self) -> None:
        """Start the processes."""
        self._before = datagrams()
        here = processors()
        for number in range(self._senders):
            child = os.fork()
            if child == 0:
                self._child(number, here[number % len(here)])
            self._children.append(child)
        wait_for(lambda: sum(datagrams()) > sum(self._before), "no socket had sent anything")

    def stop(self) -> Sent:
        """Kill the processes, possibly within a system call, and read the stack's counters."""
        alive = [child for child in self._children if os.waitpid(child, os.WNOHANG)[0] == 0]
        for child in alive:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        gone = len(self._children) - len(alive)
        self._children = []
        if gone:
            raise Wrong(f"{gone} of {self._senders} processes could not send")
        taken, refused = (
            after - before for after, before in zip(datagrams(), self._before, strict=True)
        )
        return Sent(taken + refused, refused)

    def _child(self, number: int, cpu: int) -> None:
        """The process. It never returns to its caller."""
        try:
            os.sched_setaffinity(0, {cpu})
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._device.encode())
                own.connect((self._address, 9000 + number))
                own.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER)
                batch = messages(BATCH)
                while True:
                    send_batch(own, batch)
        finally:
            os._exit(1)


def datagrams() -> tuple[int, int]:
    """The datagrams that UDP has sent so far, and those that the queue has refused."""
    found = udp_counters(Path("/proc/net/snmp").read_text())
    return found["OutDatagrams"], found["SndbufErrors"]


def udp_counters(text: str) -> dict[str, int]:
    """The counters of UDP from the table of the stack: a line of names, and one of values."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("Udp:")]
    if len(lines) != 2:
        raise Wrong("/proc/net/snmp says nothing of UDP")
    names, values = lines
    return dict(zip(names, map(int, values), strict=True))
