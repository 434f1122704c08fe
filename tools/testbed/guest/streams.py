#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One end of TCP and UDP streams, a process in the namespace of its port.

Each line of its standard input is an order as JSON, each line of its output an
answer. It receives, or sends, until a number of bytes has passed. The first
`warm` of them warm the connections up: the receiver takes the time from there.

A stream of UDP has a window, too: the receiver reports its count of bytes. Bytes that it
does not report in time are taken for lost, and the sender sends as much again.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any

# Seconds without progress until an end gives up.
PATIENCE = 10
# Without progress, a datagram is lost after so many.
UDP_PATIENCE = 0.5
# A read takes as much; a segmented datagram is smaller.
BLOCK = 128 << 10
SOL_UDP, UDP_SEGMENT, UDP_GRO = 17, 103, 104
# The payload of a frame, and frames per system call.
DATAGRAM, DATAGRAMS = 1472, 44
# Bytes of datagrams under way. All of them find room in the receiver's ring.
UDP_WINDOW = 4 * DATAGRAMS * DATAGRAM
UDP_BUFFER = 4 << 20
# The field tcpi_total_retrans of struct tcp_info.
TOTAL_RETRANS = 100

Order = Mapping[str, Any]
Answer = dict[str, Any]


def say(answer: Answer) -> None:
    """Print an answer."""
    print(json.dumps(answer), flush=True)


def limit(end: socket.socket, seconds: float) -> None:
    """Calls that block return after some seconds, without a system call more for each."""
    value = struct.pack("@ll", int(seconds), int(1e6 * (seconds % 1)))
    for name in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        end.setsockopt(socket.SOL_SOCKET, name, value)


def new_stream(order: Order) -> socket.socket:
    """A TCP socket with the buffers of an order, which bound its window."""
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    limit(end, PATIENCE)
    if size := order.get("buffer"):
        for name in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, name, size)
    return end


class Clock:
    """Counts bytes, and takes the time from the end of the warm-up on."""

    def __init__(self, warm: int) -> None:
        self.total = 0
        self._warm = warm
        self._began: tuple[int, int] | None = None

    def add(self, count: int) -> None:
        """So many bytes have come."""
        self.total += count
        if self._began is None and self.total >= self._warm:
            self._began = (self.total, time.monotonic_ns())

    def most(self) -> int:
        """The number of bytes to read at once: the warm-up ends between two reads."""
        return BLOCK if self._began else min(BLOCK, max(1, self._warm - self.total))

    def answer(self) -> Answer:
        """Bytes, and seconds from the first to the last of them."""
        ended = time.monotonic_ns()
        if self._began is None or self.total <= self._began[0]:
            raise OSError(f"{self.total} bytes came, too few")
        return {"bytes": self.total - self._began[0], "seconds": (ended - self._began[1]) / 1e9}


def receive(order: Order) -> None:
    """Accept streams, and read until all of them have ended."""
    with new_stream(order) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((order["address"], 0))
        listener.listen(order["flows"])
        say({"port": listener.getsockname()[1]})
        streams = [listener.accept()[0] for _ in range(order["flows"])]
    clock = Clock(order["warm"])
    if len(streams) == 1:
        _read(streams[0], clock)
    else:
        _read_all(streams, clock)
    say(clock.answer())


def _read(stream: socket.socket, clock: Clock) -> None:
    buffer = bytearray(BLOCK)
    limit(stream, PATIENCE)
    with stream:
        while count := stream.recv_into(buffer, clock.most()):
            clock.add(count)


def _read_all(streams: list[socket.socket], clock: Clock) -> None:
    buffer, poll = bytearray(BLOCK), select.epoll()
    known = {one.fileno(): one for one in streams}
    with poll:
        for number in known:
            poll.register(number, select.EPOLLIN)
        while known:
            for number, _ in _events(poll):
                count = known[number].recv_into(buffer, clock.most())
                if count:
                    clock.add(count)
                else:
                    poll.unregister(number)
                    known.pop(number).close()


def _events(poll: select.epoll) -> list[tuple[int, int]]:
    events = poll.poll(PATIENCE)
    if not events:
        raise TimeoutError(f"no progress for {PATIENCE} s")
    return events


def send(order: Order) -> None:
    """Connect streams, send until all bytes are with the stack, end the streams."""
    streams = []
    for _ in range(order["flows"]):
        streams.append(new_stream(order))
        streams[-1].connect((order["to"], order["port"]))
        if order.get("nodelay"):
            streams[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = bytes(order["write"])
    if len(streams) == 1:
        # The loop and all of its calls are in C.
        sum(map(streams[0].send, repeat(data, -(-order["bytes"] // len(data)))))
    else:
        _write_all(streams, data, order["bytes"])
    repeated = 0
    for stream in streams:
        stream.shutdown(socket.SHUT_WR)
    for stream in streams:
        # The other end closes when it has read all.
        stream.recv(1)
        info = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TOTAL_RETRANS + 4)
        repeated += struct.unpack_from("@I", info, TOTAL_RETRANS)[0]
        stream.close()
    say({"retransmitted": repeated})


def _write_all(streams: list[socket.socket], data: bytes, left: int) -> None:
    known = {one.fileno(): one for one in streams}
    with select.epoll() as poll:
        for number in known:
            poll.register(number, select.EPOLLOUT)
        while left > 0:
            for number, _ in _events(poll):
                left -= known[number].send(data, socket.MSG_DONTWAIT)


def receive_datagrams(order: Order) -> socket.socket:
    """Read datagrams, several at a time, and report their bytes."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UDP_BUFFER)
    end.setsockopt(SOL_UDP, UDP_GRO, 1)
    limit(end, PATIENCE)
    end.bind((order["address"], 0))
    say({"port": end.getsockname()[1]})
    buffer, clock, told, sender = bytearray(BLOCK), Clock(order["warm"]), 0, None
    while clock.total < order["bytes"]:
        count, address = end.recvfrom_into(buffer)
        if sender is None:
            sender = address
            end.connect(sender)
        clock.add(count)
        if clock.total - told >= UDP_WINDOW // 4 or clock.total >= order["bytes"]:
            told = clock.total
            end.send(struct.pack("!Q", told))
    say(clock.answer())
    # Datagrams that were taken for lost may come yet.
    return end


def send_datagrams(order: Order) -> None:
    """Send datagrams, many per call, as far as the window allows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UDP_BUFFER)
        end.setsockopt(SOL_UDP, UDP_SEGMENT, DATAGRAM)
        limit(end, UDP_PATIENCE)
        end.connect((order["to"], order["port"]))
        data = bytes(DATAGRAMS * DATAGRAM)
        sent = arrived = lost = failures = 0
        while arrived < order["bytes"]:
            while sent - lost - arrived + len(data) <= UDP_WINDOW:
                sent += end.send(data)
            try:
                arrived, failures = struct.unpack("!Q", end.recv(8))[0], 0
            except BlockingIOError:
                lost, failures = sent - arrived, failures + 1
                if failures > PATIENCE / UDP_PATIENCE:
                    raise TimeoutError(f"no progress for {PATIENCE} s") from None
        say({"retransmitted": lost / DATAGRAM})


ORDERS: Mapping[str, Callable[[Order], socket.socket | None]] = {
    "receive": receive,
    "send": send,
    "receive datagrams": receive_datagrams,
    "send datagrams": send_datagrams,
}


def main() -> int:
    """Do as ordered, to the end of the input."""
    kept: socket.socket | None = None
    for line in sys.stdin:
        order = json.loads(line)
        if kept is not None:
            kept.close()
        try:
            kept = ORDERS[order["do"]](order)
        except OSError as error:
            say({"error": f"{order['do']}: {error or type(error).__name__}"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
