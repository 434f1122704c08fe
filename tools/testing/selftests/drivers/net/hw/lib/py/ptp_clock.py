# SPDX-License-Identifier: GPL-2.0

""" PTP hardware clocks, and the packets of PTP that they stamp. """

import ctypes
import fcntl
import os
import re
import select
import socket
import struct
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from lib.py import KsftFailEx, cmd

from .support import SOL_PACKET

SO_TIMESTAMPING = 37
SCM_TIMESTAMPING = SO_TIMESTAMPING
TX_HARDWARE, RX_HARDWARE, RAW_HARDWARE = 1 << 0, 1 << 2, 1 << 6
SIOCSHWTSTAMP = 0x89B0
ETH_P_1588 = 0x88F7
MULTICAST = bytes.fromhex("011b19000000")
PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST = 1, 0
SECOND = 1_000_000_000

# Types of messages of version 2.
SYNC, DELAY_REQ, PDELAY_REQ, FOLLOW_UP = 0, 1, 2, 8

# Receive filters.
NONE, V1_SYNC, V2_EVENT, ALL = 0, 4, 12, 1


class _Timex(ctypes.Structure):
    """ struct timex """

    _fields_ = [("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long),
                ("maxerror", ctypes.c_long), ("esterror", ctypes.c_long),
                ("status", ctypes.c_int), ("constant", ctypes.c_long),
                ("precision", ctypes.c_long), ("tolerance", ctypes.c_long),
                ("seconds", ctypes.c_long), ("fraction", ctypes.c_long),
                ("tick", ctypes.c_long), ("rest", ctypes.c_long * 32)]


ADJ_FREQUENCY, ADJ_SETOFFSET, ADJ_NANO = 0x2, 0x100, 0x2000


class Reading(NamedTuple):
    """ The time of a clock, and the machine's before and after it was that. """

    before: int
    time: int
    after: int


class Clock:
    """ The clock of a port, by its device file. """

    def __init__(self, number):
        self.number = number
        self.fd = self._open()

    def _open(self):
        path = Path(f"/dev/ptp{self.number}")
        if path.exists():
            return os.open(path, os.O_RDWR)
        with tempfile.TemporaryDirectory() as folder:
            numbers = Path(f"/sys/class/ptp/ptp{self.number}/dev").read_text(encoding="ascii")
            path = Path(folder) / "clock"
            os.mknod(path, 0o20600, os.makedev(*map(int, numbers.split(":"))))
            return os.open(path, os.O_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, ex_type, ex_value, ex_tb):
        os.close(self.fd)

    @property
    def id(self):
        """ The number by which system calls know it. """
        return ~self.fd << 3 | 3

    def now(self):
        """ The time, in nanoseconds. """
        spec = (ctypes.c_long * 2)()
        if _libc.clock_gettime(self.id, spec):
            raise OSError(ctypes.get_errno(), "clock_gettime")
        return spec[0] * SECOND + spec[1]

    def read(self):
        """ The time as a Reading: the machine may stand still at any moment. """
        before = time.monotonic_ns()
        now = self.now()
        return Reading(before, now, time.monotonic_ns())

    def set(self, nanoseconds):
        """ Set the time, and return it as a Reading. """
        spec = (ctypes.c_long * 2)(*divmod(nanoseconds, SECOND))
        before = time.monotonic_ns()
        if _libc.clock_settime(self.id, spec):
            raise OSError(ctypes.get_errno(), "clock_settime")
        return Reading(before, nanoseconds, time.monotonic_ns())

    def _adjust(self, **fields):
        timex = _Timex(**fields)
        if _libc.clock_adjtime(self.id, ctypes.byref(timex)) < 0:
            raise OSError(ctypes.get_errno(), "clock_adjtime")

    def shift(self, nanoseconds):
        """ Shift the time. """
        seconds, fraction = divmod(nanoseconds, SECOND)
        self._adjust(modes=ADJ_SETOFFSET | ADJ_NANO, seconds=seconds, fraction=fraction)

    def frequency(self, ppb):
        """ Set the offset of the frequency, in parts per billion. """
        self._adjust(modes=ADJ_FREQUENCY, freq=round(ppb * 65.536))


_libc = ctypes.CDLL(None, use_errno=True)


def clock_number(ifname, host=None):
    """ Return the number of the clock of a port. """
    said = cmd(f"ethtool -T {ifname}", host=host).stdout
    found = re.search(r"(?:PTP Hardware Clock|Hardware timestamp provider index): (\d+)", said)
    if not found:
        raise KsftFailEx(f"no clock: {said}")
    return int(found[1])


def configure(ifname, tx=1, rx=V2_EVENT):
    """ Have a port of this namespace stamp packets. Returns what it does. """
    config = struct.pack("=iii", 0, tx, rx)
    buffer = ctypes.create_string_buffer(config, len(config))
    request = struct.pack("16sP", ifname.encode(), ctypes.addressof(buffer)).ljust(40, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSHWTSTAMP, request)
    return struct.unpack("=iii", buffer.raw)[1:]


def message(kind, number=0):
    """ Return a message of version 2. """
    return struct.pack(">BBHBBHqI10sHBb10s", kind, 2, 44, 0, 0, 0, 0, 0, bytes(10), number, 0, 0,
                       bytes(10))


def message_v1(control):
    """ Return a message of version 1. """
    return struct.pack(">HH", 1, 1) + bytes(28) + bytes([control]) + bytes(91)


class Sockets:
    """ A sender and receiver of messages at a port, whose stamps are those of its clock. """

    def __init__(self, ifname, address, stamps=True):
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.udp.bind((address, 319))
        self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_1588))
        self.raw.bind((ifname, ETH_P_1588))
        group = struct.pack("=iHH8s", socket.if_nametoindex(ifname), PACKET_MR_MULTICAST,
                            len(MULTICAST), MULTICAST)
        self.raw.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, group)
        for sock in (self.udp, self.raw) if stamps else ():
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING,
                            TX_HARDWARE | RX_HARDWARE | RAW_HARDWARE)

    def __enter__(self):
        return self

    def __exit__(self, ex_type, ex_value, ex_tb):
        self.udp.close()
        self.raw.close()


def _stamp(ancillary):
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SCM_TIMESTAMPING):
            seconds, nanoseconds = struct.unpack_from("=qq", data, 32)
            return seconds * SECOND + nanoseconds or None
    return None


def sent_stamp(sock, seconds=2):
    """ Return the time at which the last packet was sent, or None. """
    poll = select.poll()
    poll.register(sock, select.POLLERR)
    if not poll.poll(seconds * 1000):
        return None
    return _stamp(sock.recvmsg(1 << 12, 512, socket.MSG_ERRQUEUE)[1])


def received(sock, seconds=5):
    """ Return the next packet, and the time at which it was received, or None. """
    if not select.select([sock], [], [], seconds)[0]:
        raise KsftFailEx("no packet")
    data, ancillary, _, _ = sock.recvmsg(1 << 12, 512)
    return data, _stamp(ancillary)
