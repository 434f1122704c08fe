# SPDX-License-Identifier: GPL-2.0

"""
A stream of numbered datagrams to the peer and back: a process here sends and
receives them, and one in the namespace of the peer turns them around. Both note
the times in memory that they share, and when their interface has gone down or
up.
"""

import contextlib
import mmap
import os
import select
import socket
import struct
import time

from lib.py import KsftFailEx

from .netlink import HEADER, attributes
from .outages import Datagram
from .support import Task, make_room, wait_until

PORT = 6100
# One for each flow, which RSS may send to another queue.
FLOWS = 8
PAYLOAD = struct.Struct("=4sQ")
MAGIC = b"echo"
SIZE = 120
TIME = 8
SENT, TURNED, BACK, KINDS = 0, 1, 2, 3
IP_RECVERR = 11
RTMGRP_LINK = 1
RTM_NEWLINK, RTM_DELLINK = 16, 17
IFINFOMSG = struct.Struct("=BxHiII")
IFLA_OPERSTATE, IF_OPER_UP = 16, 6


class _Times:
    """ Shared memory: the times of each datagram. """

    def __init__(self, room):
        self.room = room
        # Unlike struct, this writes a number at once: no process reads half of one.
        self._numbers = memoryview(mmap.mmap(-1, TIME * (KINDS * room + 1))).cast("d")

    def note(self, number, kind):
        """ Note that something has happened to a datagram now. """
        self._numbers[KINDS * number + kind] = time.monotonic()

    def get(self, number):
        """ Return the times of a datagram. """
        return self._numbers[KINDS * number:KINDS * (number + 1)].tolist()

    @property
    def count(self):
        """ The number of datagrams, which the sender tells. """
        return int(self._numbers[-1])

    @count.setter
    def count(self, count):
        self._numbers[-1] = count


class _LinkLog:
    """ Writes when an interface goes up and down into a file. """

    def __init__(self, name, ifname, file):
        self._name = name
        self._index = socket.if_nametoindex(ifname)
        self._file = file
        self._last = None
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.bind((0, RTMGRP_LINK))
        self.socket.setblocking(False)

    def read(self):
        """ Read what the kernel tells. """
        with contextlib.suppress(BlockingIOError):
            while True:
                self._told(self.socket.recv(1 << 16))

    def _told(self, messages):
        while len(messages) >= HEADER.size:
            length, kind, _, _, _ = HEADER.unpack_from(messages)
            body, messages = messages[HEADER.size:length], messages[(length + 3) & ~3:]
            if kind != RTM_NEWLINK or IFINFOMSG.unpack_from(body)[2] != self._index:
                continue
            state = attributes(body[IFINFOMSG.size:]).get(IFLA_OPERSTATE, b"\0")[0]
            if state != self._last:
                self._last = state
                word = "up" if state == IF_OPER_UP else "down"
                os.write(self._file, f"{time.monotonic():.4f} {self._name} {word}\n".encode())


def _socket(address, port):
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.bind((address, port))
    make_room(out, 8 << 20)
    out.setblocking(False)
    return out


def _number(data, room):
    if len(data) < PAYLOAD.size:
        return None
    magic, number = PAYLOAD.unpack_from(data)
    return number if magic == MAGIC and number < room else None


def _turn(times, address, ifname, log, ready):
    """ Send each datagram back. """
    links = _LinkLog("peer", ifname, log)
    sockets = [_socket(address, PORT + flow) for flow in range(FLOWS)]
    os.write(ready, b"!")
    while True:
        for one in select.select([links.socket, *sockets], [], [])[0]:
            if one is links.socket:
                links.read()
                continue
            with contextlib.suppress(BlockingIOError):
                while True:
                    data, sender = one.recvfrom(2048)
                    if (number := _number(data, times.room)) is not None:
                        times.note(number, TURNED)
                        # It counts as lost if the peer cannot send it.
                        with contextlib.suppress(OSError):
                            one.sendto(data, sender)


def _stream(times, period, addresses, ifname, log):
    """ Send datagrams at an even rate, and receive those that come back. """
    links = _LinkLog("here", ifname, log)
    sockets = [_socket(addresses[0], PORT + flow) for flow in range(FLOWS)]
    for one in sockets:
        one.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
    number, due = 0, time.monotonic()
    while True:
        pause = max(0, due - time.monotonic())
        for one in select.select([links.socket, *sockets], [], [], pause)[0]:
            if one is links.socket:
                links.read()
                continue
            # Errors about earlier datagrams: there is no route while the interface is down.
            with contextlib.suppress(OSError):
                while True:
                    back = _number(one.recv(2048), times.room)
                    if back is not None:
                        times.note(back, BACK)
        if time.monotonic() < due:
            continue
        due = max(due + period, time.monotonic() - 2 * period)
        if number == times.room:
            continue
        times.note(number, SENT)
        flow = number % FLOWS
        # It counts as lost if it cannot be sent.
        with contextlib.suppress(OSError):
            sockets[flow].sendto(PAYLOAD.pack(MAGIC, number).ljust(SIZE, b"."),
                                 (addresses[1], PORT + flow))
        number += 1
        times.count = number


class Echo:
    """ A running stream. """

    def __init__(self, cfg, period, seconds):
        """ @cfg: an environment with a peer in a namespace. @seconds: the most that it runs. """
        self._times = _Times(int(seconds / period))
        self._log = os.memfd_create("links")
        self._period = period
        read, ready = os.pipe()
        addresses = (cfg.addr_v["4"], cfg.remote_addr_v["4"])
        self._peer = Task(_turn, self._times, addresses[1], cfg.remote_ifname, self._log, ready,
                          ns=cfg.remote_ns)
        os.close(ready)
        if not os.read(read, 1):
            raise KsftFailEx("the peer does not start")
        os.close(read)
        self._stream = Task(_stream, self._times, period, addresses, cfg.ifname, self._log)

    def running(self):
        """ Whether both processes run. """
        return self._peer.running() and self._stream.running()

    @property
    def count(self):
        """ The number of datagrams that were sent until now. """
        return self._times.count

    def came_back_since(self, number):
        """ Return the first datagram from this number on that is back; None if there is none. """
        for one in range(number, self.count):
            sent, turned, back = self._times.get(one)
            if back:
                return Datagram(one, sent, turned, back)
        return None

    def wait(self, count=1):
        """ Wait until more datagrams are sent. """
        until = self.count + count
        wait_until(lambda: self.count >= until, 10, "the stream goes on", sleep=self._period / 4)

    def links(self):
        """ Return the lines about links going down and up: the time, the end, and the state. """
        text = os.pread(self._log, 1 << 24, 0).decode()
        return [(float(time), end, state)
                for time, end, state in (line.split() for line in text.splitlines())]

    def finish(self, seconds=10.0):
        """ Wait for what is under way, stop, and return all datagrams until now. """
        count = self.count
        end = time.monotonic() + seconds
        # Those of one flow may overtake those of another one.
        while time.monotonic() < end and not self.came_back_since(count + 2 * FLOWS):
            time.sleep(self._period)
        self.stop()
        return [Datagram(number, *self._times.get(number)) for number in range(count)]

    def stop(self):
        """ Kill both processes. """
        for task in (self._stream, self._peer):
            task.kill()
