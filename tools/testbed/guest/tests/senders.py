# SPDX-License-Identifier: GPL-2.0
"""Several processes send numbered datagrams from one network namespace to another one.

Prints how many were sent and received. Fails if any came twice or out of the order of its sender;
with --all also if one that was sent did not come.
"""

from __future__ import annotations

import argparse
import mmap
import os
import selectors
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field

PORT = 6000
SIZE = 120
# All that one sender may have on its way.
BUFFER = 1 << 26
# How long a sender that is too far ahead of the receiver waits, which has not the memory for any
# number: what was sent may be lost.
PATIENCE = 0.05
# Within that time there is a route again.
ROUTE = 5.0
# No more comes if nothing has come for so long after the last one was sent.
QUIET = 0.3
NUMBER = struct.Struct("=Q")


@dataclass
class Plan:
    """What the senders do."""

    address: str
    senders: int
    count: int
    seconds: float
    kill: bool
    ahead: int
    patience: float


@dataclass
class Seen:
    """What came from one sender."""

    next: int = 0
    received: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, number: int) -> None:
        """Note a datagram."""
        if number < self.next:
            self.wrong.append(f"{number} came after {self.next - 1}")
        self.next = number + 1
        self.received += 1


def _enter(name: str) -> None:
    with open(f"/run/netns/{name}", "rb") as namespace:
        os.setns(namespace.fileno(), os.CLONE_NEWNET)


class Progress:
    """What the processes tell each other: what a sender has sent, and what came of it."""

    def __init__(self, senders: int) -> None:
        self._memory = mmap.mmap(-1, 2 * NUMBER.size * senders)

    def sent(self, sender: int) -> int:
        """How many datagrams the kernel has taken."""
        return int(NUMBER.unpack_from(self._memory, 2 * NUMBER.size * sender)[0])

    def set_sent(self, sender: int, count: int) -> None:
        """The sender says so."""
        NUMBER.pack_into(self._memory, 2 * NUMBER.size * sender, count)

    def seen(self, sender: int) -> int:
        """The number that the receiver expects next."""
        return int(NUMBER.unpack_from(self._memory, (2 * sender + 1) * NUMBER.size)[0])

    def set_seen(self, sender: int, number: int) -> None:
        """The receiver says so."""
        NUMBER.pack_into(self._memory, (2 * sender + 1) * NUMBER.size, number)


def _connect(out: socket.socket, plan: Plan, sender: int) -> None:
    """Connect, which takes a route: there is none while the interface is down."""
    patience = time.monotonic() + ROUTE
    while True:
        try:
            out.connect((plan.address, PORT + sender))
        except OSError:
            if time.monotonic() > patience:
                raise
            time.sleep(0.001)
        else:
            return


def _send(plan: Plan, sender: int, progress: Progress) -> None:
    """Send until done."""
    end = time.monotonic() + plan.seconds
    base = 0
    number = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        _connect(out, plan, sender)
        while number < plan.count if plan.count else time.monotonic() < end:
            # The interface may be down: what is not taken is tried again.
            with suppress(OSError):
                out.send(NUMBER.pack(number).ljust(SIZE, b"."))
                number += 1
                progress.set_sent(sender, number)
            if number > max(base, progress.seen(sender)) + plan.ahead:
                patience = time.monotonic() + plan.patience
                while progress.seen(sender) + plan.ahead < number and time.monotonic() < patience:
                    time.sleep(0.001)
                base = number - plan.ahead // 2


def _start(plan: Plan, sender: int, progress: Progress) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        cpus = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cpus[sender % len(cpus)]})
        _send(plan, sender, progress)
        code = 0
    finally:
        os._exit(code)


def _sockets(plan: Plan, namespace: str) -> list[socket.socket]:
    _enter(namespace)
    sockets = []
    for sender in range(plan.senders):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # SO_RCVBUFFORCE: more than the limit.
        one.setsockopt(socket.SOL_SOCKET, 33, BUFFER)
        one.bind((plan.address, PORT + sender))
        one.setblocking(False)
        sockets.append(one)
    return sockets


def _drain(one: socket.socket, seen: Seen) -> None:
    with suppress(BlockingIOError):
        for _ in range(64):
            seen.add(NUMBER.unpack_from(one.recv(SIZE))[0])


def _receive(
    plan: Plan, sockets: list[socket.socket], children: list[int], progress: Progress
) -> list[Seen]:
    """Receive until the senders have ended and nothing comes any more."""
    seen = [Seen() for _ in sockets]
    victim = children[0] if plan.kill else 0
    last = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for sender, one in enumerate(sockets):
            selector.register(one, selectors.EVENT_READ, sender)
        while children or time.monotonic() < last + QUIET:
            for key, _ in selector.select(0.05):
                _drain(sockets[key.data], seen[key.data])
                progress.set_seen(key.data, seen[key.data].next)
                last = time.monotonic()
            if victim and progress.sent(0) >= plan.count // 2:
                os.kill(victim, signal.SIGKILL)
                victim = 0
            if children:
                child, status = os.waitpid(-1, os.WNOHANG)
                last = time.monotonic()
                if child:
                    children.remove(child)
                if status and not plan.kill:
                    sys.exit("a sender has failed")
    return seen


def _verdict(plan: Plan, seen: list[Seen], progress: Progress, must_all: bool) -> int:
    sent, wrong = 0, []
    for sender, what in enumerate(seen):
        taken = progress.sent(sender)
        # Who was killed may have been between sending and counting.
        if plan.kill and sender == 0 and what.next == taken + 1:
            taken += 1
        sent += taken
        wrong += [f"sender {sender}: {text}" for text in what.wrong[:3]]
        if must_all and what.received != taken:
            wrong.append(f"sender {sender}: {what.received} of {taken} came")
        if what.next > taken:
            wrong.append(f"sender {sender}: {what.next - 1} came, {taken} were sent")
        if not taken:
            wrong.append(f"sender {sender}: nothing was sent")
    print(f"sent {sent} received {sum(what.received for what in seen)}", *wrong, sep="; ")
    return 1 if wrong else 0


def main() -> int:
    """Send, receive, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("address")
    parser.add_argument("--senders", type=int, default=6)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--kill", action="store_true", help="kill a sender half-way")
    parser.add_argument("--all", action="store_true", help="fail if one does not come")
    parser.add_argument("--ahead", type=int, default=2000,
                        help="how far a sender may be ahead of the receiver")  # fmt: skip
    given = parser.parse_args()
    # If all must come, nothing was lost: it is just slow.
    patience = 20.0 if given.all else PATIENCE
    plan = Plan(given.address, given.senders, given.count, given.seconds, given.kill,
                given.ahead, patience)  # fmt: skip
    progress = Progress(plan.senders)
    sockets = _sockets(plan, given.target)
    _enter(given.source)
    children = [_start(plan, sender, progress) for sender in range(plan.senders)]
    seen = _receive(plan, sockets, children, progress)
    return _verdict(plan, seen, progress, given.all)


if __name__ == "__main__":
    sys.exit(main())
