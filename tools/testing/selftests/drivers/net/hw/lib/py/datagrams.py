# SPDX-License-Identifier: GPL-2.0

"""
Numbered datagrams of several senders at the same time: does each of them
arrive, once, and in the order of its sender?

Senders and the receiver are processes that share their progress in memory: a
sender that is far ahead waits, so that the receive buffers do not overflow.
"""

import contextlib
import errno
import itertools
import mmap
import operator
import os
import selectors
import signal
import socket
import struct
import time
from dataclasses import dataclass, field

from lib.py import KsftFailEx, ksft_eq, ksft_gt, ksft_pr

from .support import PACKET_QDISC_BYPASS, SOL_PACKET, Task, make_room, wait_until

PORT = 6000
SIZE = 120
# An experimental EtherType (IEEE 802).
ETHERTYPE = 0x88B5
HEADER = bytes(6 * [0xFF]) + bytes.fromhex("02feedfeed02") + ETHERTYPE.to_bytes(2, "big")
PAYLOAD = struct.Struct("=4sIQ")
MAGIC = b"ring"
NUMBER = 8
# The queue has dropped it, or the driver's ring is full.
FULL = (errno.ENOBUFS, errno.EAGAIN)
AWAY = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENODEV,
        errno.ENXIO, errno.ECONNREFUSED)
# The time for a route to come back.
ROUTE = 5.0
# A datagram that was the last of its sender counts as lost if none has arrived
# for this long.
QUIET = 2.0
PAUSE = 0.0005
# The receiver knows that senders go on, that they have ended, that nothing is under way.
GOES_ON, ENDED, DRAINED = range(3)


@dataclass
class Plan:
    """ Parameters of the senders. """

    # The destination address, or with @packet the sending interface.
    where: str
    # The receiving interface, with @packet.
    whence: str = ""
    # Send by packet sockets, past the queueing discipline.
    packet: bool = False
    source: str = None
    target: str = None
    senders: int = 6
    # The number of datagrams for each sender, or the most seconds until Flow.end().
    count: int = 0
    seconds: float = 0
    # How far a sender may be ahead of the receiver, and how long it waits if it
    # is: datagrams may be lost.
    ahead: int = 2000
    patience: float = 0.05


@dataclass
class Seen:
    """ The datagrams received from one sender. """

    next: int = 0
    received: int = 0
    disordered: int = 0
    twice: int = 0
    numbers: set = field(default_factory=set)

    def add(self, number):
        """ Record a datagram. """
        self.received += 1
        self.disordered += number < self.next
        self.twice += number in self.numbers
        self.numbers.add(number)
        self.next = max(self.next, number + 1)


class _Progress:
    """
    Shared memory: for each sender the number that comes next when it sends, and
    when they are received, and how many were received; and how the run ends.
    """

    def __init__(self, senders):
        # Unlike struct, this writes a number at once: no process reads half of one.
        self._numbers = memoryview(mmap.mmap(-1, NUMBER * (3 * senders + 2))).cast("Q")
        self._senders = senders

    def get(self, index):
        """ Read number @index. """
        return self._numbers[index]

    def set(self, index, number):
        """ Write number @index, which has a single writer. """
        self._numbers[index] = number

    def sent(self, sender):
        """ Return the index of the datagrams sent by a sender. """
        return sender

    def seen(self, sender):
        """ Return the index of the datagrams received from a sender. """
        return self._senders + sender

    def received(self, sender):
        """ Return the index of how many were received from a sender. """
        return 2 * self._senders + sender

    @property
    def enough(self):
        """ The index of what tells the senders to end. """
        return 3 * self._senders

    @property
    def end(self):
        """ The index of what tells the receiver to end. """
        return 3 * self._senders + 1


def _socket(plan, sender):
    """
    Open the socket of a sender. connect() needs a route, and there is none
    while an interface is down.
    """
    if plan.packet:
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        out.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        out.bind((plan.where, 0))
        return out
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end = time.monotonic() + ROUTE
    while True:
        try:
            out.connect((plan.where, PORT + sender))
            return out
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.001)


def _send(plan, sender, progress):
    """ Run one sender. """
    taken = refused = away = number = base = 0
    end = time.monotonic() + plan.seconds if plan.seconds else float("inf")
    header = HEADER if plan.packet else b""
    with _socket(plan, sender) as out:
        for turn in itertools.count():
            if number == plan.count and plan.count:
                break
            if turn % 16 == 0 and (progress.get(progress.enough) or time.monotonic() > end):
                break
            data = header + PAYLOAD.pack(MAGIC, sender, number)
            try:
                out.send(data.ljust(SIZE, b"."))
                taken += 1
            except OSError as problem:
                if problem.errno in AWAY:
                    away += 1
                elif problem.errno in FULL:
                    refused += 1
                else:
                    raise
                time.sleep(PAUSE)
                # Send the same one again.
                continue
            number += 1
            progress.set(progress.sent(sender), number)
            if number > max(base, progress.get(progress.seen(sender))) + plan.ahead:
                patience = time.monotonic() + plan.patience
                while (progress.get(progress.seen(sender)) + plan.ahead < number
                       and time.monotonic() < patience):
                    time.sleep(PAUSE)
                base = number - plan.ahead // 2
    return {"taken": taken, "refused": refused, "away": away}


def _sockets(plan):
    """ Open the sockets of the receiver. """
    if plan.packet:
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        out.bind((plan.whence, ETHERTYPE))
        found = [out]
    else:
        found = []
        for sender in range(plan.senders):
            out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            out.bind(("", PORT + sender))
            found.append(out)
    for out in found:
        make_room(out, 64 << 20)
        out.setblocking(False)
    return found


def _receive(plan, progress, ready):
    """ Receive until the senders have ended and nothing more arrives. """
    seen = [Seen() for _ in range(plan.senders)]

    def complete():
        """ Whether the last one of each sender is there, which none may come behind. """
        return all(one.next >= progress.get(progress.sent(sender))
                   for sender, one in enumerate(seen))

    skip = len(HEADER) if plan.packet else 0
    with selectors.DefaultSelector() as selector:
        for one in _sockets(plan):
            selector.register(one, selectors.EVENT_READ)
        os.write(ready, b"!")
        last, events = time.monotonic(), True
        while True:
            ended = progress.get(progress.end)
            # A duplicate may come last.
            if ended and not events and (ended == DRAINED or complete()
                                         or time.monotonic() > last + QUIET):
                break
            events = selector.select(0.05)
            if events or not ended:
                last = time.monotonic()
            for key, _ in events:
                with contextlib.suppress(BlockingIOError):
                    for _ in range(64):
                        data = key.fileobj.recv(2048)
                        if len(data) < skip + PAYLOAD.size:
                            continue
                        magic, sender, number = PAYLOAD.unpack_from(data, skip)
                        if magic != MAGIC or sender >= plan.senders:
                            continue
                        seen[sender].add(number)
                        progress.set(progress.seen(sender), seen[sender].next)
                        progress.set(progress.received(sender), seen[sender].received)
    return [[one.received, one.disordered, one.twice, one.next] for one in seen]


@dataclass
class Result:
    """ Totals, and the datagrams sent and received per sender. """

    taken: int
    refused: int
    away: int
    received: int
    disordered: int
    twice: int
    each: list

    def check_order(self):
        """ Check that no datagram arrived twice or out of order. """
        ksft_eq((self.disordered, self.twice), (0, 0),
                f"disordered, and twice, of {self.received}")

    def check_all(self):
        """
        Check that every datagram arrived once and in order, from every sender.
        """
        self.check_order()
        for sender, (taken, received) in enumerate(self.each):
            ksft_gt(taken, 0, f"datagrams of sender {sender}")
            ksft_eq(received, taken, f"received of sender {sender}")


class Flow:
    """ The processes of a plan, from their start to finish(). """

    def __init__(self, plan):
        self.plan = plan
        self._progress = _Progress(plan.senders)
        read, ready = os.pipe()
        self._receiver = Task(_receive, plan, self._progress, ready, ns=plan.target)
        os.close(ready)
        if not os.read(read, 1):
            raise KsftFailEx("the receiver does not start")
        os.close(read)
        cpus = sorted(os.sched_getaffinity(0))
        self._senders = [
            Task(_send, plan, sender, self._progress, ns=plan.source,
                 cpu=cpus[sender % len(cpus)])
            for sender in range(plan.senders)]
        self._killed = None

    def kill_one_half_way(self, seconds=60):
        """ Kill the first sender in the middle of its datagrams. """
        end = time.monotonic() + seconds
        while self._progress.get(self._progress.sent(0)) < self.plan.count // 2:
            if time.monotonic() > end:
                raise KsftFailEx("the sender does not come so far")
            time.sleep(PAUSE)
        self._senders[0].kill(signal.SIGKILL)
        self._killed = self._progress.get(self._progress.sent(0))

    def passes(self, count=10):
        """ Wait until so many more datagrams of each sender have come through. """
        def get(index):
            return [self._progress.get(index(sender)) for sender in range(self.plan.senders)]

        until = [sent + count for sent in get(self._progress.sent)]
        wait_until(lambda: all(map(operator.ge, get(self._progress.seen), until)), 60,
                   "datagrams of each sender arrive", sleep=PAUSE)

    def end(self):
        """ Tell the senders to end. """
        self._progress.set(self._progress.enough, 1)

    def stop(self):
        """ Kill all processes. """
        for task in (*self._senders, self._receiver):
            task.kill()

    def _drain(self, taken, dropped):
        """ Wait until each datagram was received, or counted as dropped. """
        def known():
            return dropped() + sum(self._progress.get(self._progress.received(sender))
                                   for sender in range(self.plan.senders))

        wait_until(lambda: known() >= taken, 20, f"{taken} taken are received or dropped")
        self._progress.set(self._progress.end, DRAINED)

    def finish(self, seconds=120, dropped=None):
        """
        Wait for the senders and then for the datagrams under way, of which @dropped
        returns how many were lost, if something counts them.
        """
        try:
            told = []
            for number, sender in enumerate(self._senders):
                if number == 0 and self._killed is not None:
                    told.append({"taken": self._killed, "refused": 0, "away": 0})
                else:
                    told.append(sender.result(seconds))
            self._progress.set(self._progress.end, ENDED)
            if dropped:
                self._drain(sum(one["taken"] for one in told), dropped)
            seen = self._receiver.result(seconds)
        finally:
            self.stop()
        if self._killed is not None and seen[0][3] == self._killed + 1:
            # It was killed between sending and counting.
            told[0]["taken"] += 1
        result = Result(*[sum(one[name] for one in told)
                          for name in ("taken", "refused", "away")],
                        *[sum(one[index] for one in seen) for index in range(3)],
                        [(one["taken"], two[0]) for one, two in zip(told, seen, strict=True)])
        ksft_pr(f"{result.taken} taken, {result.refused} refused, {result.away} while away; "
                f"{result.received} received, {result.disordered} disordered, "
                f"{result.twice} twice")
        return result


def run(plan):
    """ Run a plan to its end. """
    return Flow(plan).finish()
