# SPDX-License-Identifier: GPL-2.0
"""Numbered UDP datagrams: senders count what the stack has taken, the receiver what came, how many
of those came behind a later one of the same sender, and how many had come before."""

from __future__ import annotations

import errno
import selectors
import signal
import socket
import struct
import sys
import time

SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
IP_RECVERR = 11
NUMBER = struct.Struct("!I")
SIZE = 120
# The queue has dropped it. For others, it was dropped without its sender being told of it.
FULL = errno.ENOBUFS
AWAY = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENODEV, errno.ECONNREFUSED)


def send(address: str, port: int, count: int, seconds: float) -> None:
    """Sends at most `count` datagrams, for at most so long."""
    taken = refused = away = 0
    filling = bytes(SIZE - NUMBER.size)
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20)
        # Without this, UDP does not say that the queue has dropped something.
        sender.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        for number in range(count):
            if not number % 64 and time.monotonic() > end:
                break
            try:
                sender.sendto(NUMBER.pack(number) + filling, (address, port))
            except OSError as error:
                if error.errno == FULL:
                    refused += 1
                elif error.errno in AWAY:
                    away += 1
                    time.sleep(0.01)
                else:
                    raise
            else:
                taken += 1
    print("taken", taken, "refused", refused, "away", away)


def receive(address: str, port: int, senders: int) -> None:
    """Receives on so many ports, one for each sender, until a signal comes and nothing else."""
    ending = False

    def end(*_: object) -> None:
        nonlocal ending
        ending = True

    signal.signal(signal.SIGTERM, end)
    last = [-1] * senders
    seen: list[set[int]] = [set() for _ in range(senders)]
    received = disordered = twice = 0
    with selectors.DefaultSelector() as selector:
        for index in range(senders):
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            receiver.setblocking(False)
            receiver.bind((address, port + index))
            selector.register(receiver, selectors.EVENT_READ, (receiver, index))
        print("ready", flush=True)
        while (events := selector.select(0.5)) or not ending:
            for key, _ in events:
                receiver, index = key.data
                for _ in range(64):
                    try:
                        number = NUMBER.unpack_from(receiver.recv(2048))[0]
                    except BlockingIOError:
                        break
                    received += 1
                    disordered += number < last[index]
                    twice += number in seen[index]
                    last[index] = max(last[index], number)
                    seen[index].add(number)
    print("received", received, "disordered", disordered, "twice", twice)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["send", host, number, limit, most]:
            send(host, int(number), int(limit), float(most))
        case ["receive", host, number, sources]:
            receive(host, int(number), int(sources))
        case _:
            sys.exit("usage: datagrams.py send HOST PORT COUNT SECONDS | receive HOST PORT SENDERS")
