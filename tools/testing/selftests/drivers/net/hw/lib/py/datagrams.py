# SPDX-License-Identifier: GPL-2.0

"""
Numbered datagrams of several senders at the same time: does each arrive, once,
and in the order of its sender?

Senders and the receiver are processes, which tell each other by shared memory
how far they are: none is so far ahead of the receiver that there is no room
where it receives.
"""

import contextlib
import errno
import itertools
import mmap
import os
import selectors
import signal
import socket
import struct
import time
from dataclasses import dataclass, field

from lib.py import KsftFailEx, ksft_eq, ksft_gt, ksft_pr

from .support import PACKET_QDISC_BYPASS, SOL_PACKET, Task

PORT = 6000
SIZE = 120
# A type for experiments (IEEE 802).
ETHERTYPE = 0x88B5
HEADER = bytes(6 * [0xFF]) + bytes.fromhex("02feedfeed02") + ETHERTYPE.to_bytes(2, "big")
PAYLOAD = struct.Struct("=4sIQ")
MAGIC = b"ring"
NUMBER = struct.Struct("=Q")
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
IP_RECVERR = 11
# The queue has dropped it, or the driver's ring is full.
FULL = (errno.ENOBUFS, errno.EAGAIN)
AWAY = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENODEV,
        errno.ENXIO, errno.ECONNREFUSED)
# Within that time there is a route again.
ROUTE = 5.0
# A missing datagram counts as lost if none has arrived for so long after the
# last one was sent.
QUIET = 2.0
PAUSE = 0.0005


@dataclass
class Plan:
    """ What the senders do. """

    # Where they are sent to, or with @packet from which interface.
    where: str
    # The interface that receives, with @packet.
    whence: str = ""
    # Past the queueing discipline, by packet sockets.
    packet: bool = False
    source: str = None
    target: str = None
    senders: int = 6
    # As many datagrams, or as many seconds, of each sender.
    count: int = 0
    seconds: float = 0
    # How far a sender may be ahead of the receiver, and for how long it waits
    # if it is: what was sent may be lost.
    ahead: int = 2000
    patience: float = 0.05
    # Senders are told what the queue drops, and do not send that again.
    told: bool = False


@dataclass
class Seen:
    """ What came from one sender. """

    next: int = 0
    received: int = 0
    disordered: int = 0
    twice: int = 0
    numbers: set = field(default_factory=set)

    def add(self, number):
        """ Note a datagram. """
        self.received += 1
        self.disordered += number < self.next
        self.twice += number in self.numbers
        self.numbers.add(number)
        self.next = max(self.next, number + 1)


class _Progress:
    """ Shared memory: what each sender has sent, what the receiver expects next. """

    def __init__(self, senders):
        self._memory = mmap.mmap(-1, NUMBER.size * (2 * senders + 1))
        self._senders = senders

    def get(self, index):
        """ Number @index; the last says that all senders have ended. """
        return NUMBER.unpack_from(self._memory, NUMBER.size * index)[0]

    def set(self, index, number):
        """ Each has one writer. """
        NUMBER.pack_into(self._memory, NUMBER.size * index, number)

    def sent(self, sender):
        """ Where the sender says what it has sent. """
        return sender

    def seen(self, sender):
        """ Where the receiver says what it expects. """
        return self._senders + sender

    @property
    def end(self):
        """ Where it stands that nothing more is sent. """
        return 2 * self._senders


def _socket(plan, sender):
    """
    A socket of a sender. To connect takes a route, and there is none while an
    interface is down; one that is told of each failure is not connected.
    """
    if plan.packet:
        out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        out.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        out.bind((plan.where, 0))
        return out
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if plan.told:
        out.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20)
        out.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        return out
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
    """ One sender. """
    taken = refused = away = number = base = 0
    end = time.monotonic() + plan.seconds if plan.seconds else float("inf")
    header = HEADER if plan.packet else b""
    where = (plan.where, PORT + sender)
    with _socket(plan, sender) as out:
        for turn in itertools.count():
            if number == plan.count and plan.count:
                break
            if turn % 16 == 0 and time.monotonic() > end:
                break
            data = header + PAYLOAD.pack(MAGIC, sender, number)
            error = 0
            try:
                if plan.told:
                    out.sendto(data.ljust(SIZE, b"."), where)
                else:
                    out.send(data.ljust(SIZE, b"."))
                taken += 1
            except OSError as problem:
                error = problem.errno
                if error in AWAY:
                    away += 1
                    time.sleep(0.01 if plan.told else PAUSE)
                elif error in FULL:
                    refused += 1
                    if not plan.told:
                        time.sleep(PAUSE)
                else:
                    raise
            if error and not plan.told:
                # Whatever was in the way, the same one once more.
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
    """ Those of the receiver. """
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
        out.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        out.setblocking(False)
    return found


def _receive(plan, progress, ready):
    """ Until the senders have ended, and all has come or nothing comes any more. """
    seen = [Seen() for _ in range(plan.senders)]

    def complete():
        return all(one.received >= progress.get(progress.sent(sender))
                   for sender, one in enumerate(seen))

    skip = len(HEADER) if plan.packet else 0
    with selectors.DefaultSelector() as selector:
        for one in _sockets(plan):
            selector.register(one, selectors.EVENT_READ)
        os.write(ready, b"!")
        last, events = time.monotonic(), True
        while True:
            ended = progress.get(progress.end)
            # One that comes twice may come last.
            if ended and not events and (complete() or time.monotonic() > last + QUIET):
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
    return [[one.received, one.disordered, one.twice, one.next] for one in seen]


@dataclass
class Result:
    """ What came of it: sums, and what each sender has sent and had received. """

    taken: int
    refused: int
    away: int
    received: int
    disordered: int
    twice: int
    each: list

    def check_order(self):
        """ Nothing came twice, or behind a later one. """
        ksft_eq((self.disordered, self.twice), (0, 0),
                f"disordered, and twice, of {self.received}")

    def check_all(self):
        """ Each came, once and in order, and each sender has sent. """
        self.check_order()
        for sender, (taken, received) in enumerate(self.each):
            ksft_gt(taken, 0, f"datagrams of sender {sender}")
            ksft_eq(received, taken, f"received of sender {sender}")


class Flow:
    """ The processes of a plan, from their start until finish(). """

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

    def sending(self):
        """ Is each sender still there? """
        return all(sender.running() for sender in self._senders)

    def kill_one_half_way(self, seconds=60):
        """ The first sender ends amid its datagrams. """
        end = time.monotonic() + seconds
        while self._progress.get(self._progress.sent(0)) < self.plan.count // 2:
            if time.monotonic() > end:
                raise KsftFailEx("the sender does not come so far")
            time.sleep(PAUSE)
        self._senders[0].kill(signal.SIGKILL)
        self._killed = self._progress.get(self._progress.sent(0))

    def stop(self):
        """ End everything, whatever it does. """
        for task in (*self._senders, self._receiver):
            task.kill()

    def finish(self, seconds=120):
        """ Wait for the senders, then for what they have sent. """
        try:
            told = []
            for number, sender in enumerate(self._senders):
                if number == 0 and self._killed is not None:
                    told.append({"taken": self._killed, "refused": 0, "away": 0})
                else:
                    told.append(sender.result(seconds))
            self._progress.set(self._progress.end, 1)
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
    """ All of it. """
    return Flow(plan).finish()
