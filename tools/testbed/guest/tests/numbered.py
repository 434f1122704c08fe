# SPDX-License-Identifier: GPL-2.0
"""Numbered datagrams of several senders at the same time: does each arrive, once, and in order?

The receiver tells the senders how far it has come by a file that both have mapped. None is far
ahead of that, so nothing is lost for want of room where it is received.
"""

from __future__ import annotations

import argparse
import errno
import mmap
import os
import socket
import struct
import sys
import time
from pathlib import Path

SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20
SO_RCVBUFFORCE = 33
# A type for experiments (IEEE 802).
ETHERTYPE = 0x88B5
HEADER = bytes(6 * [0xFF]) + bytes.fromhex("02feedfeed02") + ETHERTYPE.to_bytes(2, "big")
PAYLOAD = struct.Struct("<4sII")
MAGIC = b"ring"
COUNTER = struct.Struct("<I")
WINDOW = 48
# Who has to wait leaves the processor to the receiver.
PAUSE = 0.0005
PORT = 7979
# The ring is full, the queue stopped, or the list of those who combine is full.
BUSY = (errno.ENOBUFS, errno.EAGAIN)


def shared(path: str, senders: int) -> mmap.mmap:
    """Maps what both sides know."""
    with Path(path).open("r+b") as file:
        return mmap.mmap(file.fileno(), COUNTER.size * senders)


def send(how: argparse.Namespace, sender: int) -> bool:
    """Sends all datagrams of one sender. Returns whether it could."""
    os.sched_setaffinity(0, {sender % (os.cpu_count() or 1)})
    arrived = shared(how.map, how.senders)
    end = time.monotonic() + how.seconds
    family, kind = (
        (socket.AF_PACKET, socket.SOCK_RAW)
        if how.way == "packet"
        else (socket.AF_INET, socket.SOCK_DGRAM)
    )
    with socket.socket(family, kind) as out:
        if how.way == "packet":
            out.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
            out.bind((how.where, 0))
        else:
            out.connect((how.where, PORT))
        header = HEADER if how.way == "packet" else b""
        for number in range(how.count):
            data = header + PAYLOAD.pack(MAGIC, sender, number) + bytes(60)
            while number - COUNTER.unpack_from(arrived, COUNTER.size * sender)[0] >= WINDOW:
                if time.monotonic() > end:
                    return False
                time.sleep(PAUSE)
            while True:
                try:
                    out.send(data)
                    break
                except OSError as error:
                    if error.errno not in BUSY or time.monotonic() > end:
                        raise
                    time.sleep(PAUSE)
    return True


def send_all(how: argparse.Namespace) -> int:
    """Runs all senders."""
    children = []
    for sender in range(how.senders):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if send(how, sender) else 1
            finally:
                os._exit(code)
        children.append(child)
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    if failed:
        print(f"{failed} of {how.senders} senders have failed", file=sys.stderr)
    return 1 if failed else 0


def receive(how: argparse.Namespace) -> int:
    """Receives all that is sent, and says what was wrong with it."""
    arrived = shared(how.map, how.senders)
    expected = [0] * how.senders
    wrong = 0
    if how.way == "packet":
        source = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        source.bind((how.where, ETHERTYPE))
    else:
        source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        source.bind((how.where, PORT))
    with source:
        source.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        source.settimeout(how.seconds)
        Path(how.map + ".ready").touch()
        skip = len(HEADER) if how.way == "packet" else 0
        total = how.senders * how.count
        received = 0
        while received < total:
            try:
                data = source.recv(2048)
            except TimeoutError:
                break
            if len(data) < skip + PAYLOAD.size:
                continue
            magic, sender, number = PAYLOAD.unpack_from(data, skip)
            if magic != MAGIC or sender >= how.senders:
                continue
            received += 1
            wrong += number != expected[sender]
            expected[sender] = number + 1
            COUNTER.pack_into(arrived, COUNTER.size * sender, number + 1)
    print(f"{received} of {total}, {wrong} not in order")
    return 0


def main() -> int:
    """Reads the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=("send", "receive"))
    parser.add_argument("way", choices=("packet", "udp"))
    parser.add_argument("where", help="interface, or address")
    parser.add_argument("map", help="a file that both sides have")
    parser.add_argument("senders", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("seconds", type=float)
    how = parser.parse_args()
    return send_all(how) if how.side == "send" else receive(how)


if __name__ == "__main__":
    sys.exit(main())
