# SPDX-License-Identifier: GPL-2.0
"""Senders that are processes with a packet socket each, and need few system calls.

A socket has a ring of frames in memory shared with the kernel. One call sends them
one by one, through dev_queue_xmit(), and returns when all of them have left. So a
sender has at most a ring of packets in flight, like any socket with its limited
send buffer; pktgen has no such limit.
"""

from __future__ import annotations

import errno
import mmap
import os
import signal
import socket
import struct
import time

from senders import FRAME, PATIENCE, Sent, Wrong, processors, wait_for

# From linux/if_packet.h; Python lacks these.
SOL_PACKET, TPACKET_V2 = 263, 1
PACKET_VERSION, PACKET_TX_RING = 10, 13
SEND_REQUEST = 1
# The offsets of a packet and of its length in a frame.
HEADER, LENGTH_AT = 32, 4
FRAME_SIZE, BLOCK = 256, 4096
# In the ring of a process.
FRAMES = 256
# More than the packets of a ring need.
SEND_BUFFER = 1 << 21


def packet(mac: str, source: str, target: str, port: int) -> bytes:
    """A frame with a datagram of zeros, sufficient for a queueing discipline."""
    addresses = socket.inet_aton(source) + socket.inet_aton(target)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, FRAME - 14, 0, 0, 64, socket.IPPROTO_UDP, 0)
    ip = ip[:10] + struct.pack("!H", checksum(ip + addresses)) + addresses
    udp = struct.pack("!HHHH", port, port, FRAME - 34, 0)
    start = bytes.fromhex(mac.replace(":", "")) + bytes(6) + b"\x08\x00" + ip + udp
    return start.ljust(FRAME, b"\0")


def checksum(header: bytes) -> int:
    """The checksum of an IPv4 header."""
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class PacketRings:
    """Processes on the processors in turn."""

    def __init__(self, device: str, senders: int, mac: str, source: str, target: str) -> None:
        self._device = device
        self._packets = [packet(mac, source, target, 9000 + number) for number in range(senders)]
        self._children: list[int] = []
        # A flag to stop, and for each process its sent and refused packets.
        self._shared = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")

    def start(self) -> None:
        """Start the processes."""
        here = processors()
        for number, data in enumerate(self._packets):
            child = os.fork()
            if child == 0:
                self._child(number, data, here[number % len(here)])
            self._children.append(child)
        wait_for(lambda: all(self._shared[1 + 2 * number] for number in range(len(self._packets))),
                 "not all packet sockets had sent anything")  # fmt: skip

    def stop(self) -> Sent:
        """Let them finish their rings, and count."""
        self._shared[0] = 1
        deadline = time.monotonic() + PATIENCE
        codes: list[int] = []
        for child in self._children:
            found = (0, 0)
            while found[0] == 0 and time.monotonic() < deadline:
                found = os.waitpid(child, os.WNOHANG)
                time.sleep(0.002)
            if found[0] == 0:
                os.kill(child, signal.SIGKILL)
                found = os.waitpid(child, 0)
            codes.append(found[1])
        if any(codes):
            raise Wrong(f"processes with packet sockets ended with {codes}")
        counts = [int(self._shared[1 + one]) for one in range(2 * len(self._packets))]
        refused = sum(counts[1::2])
        return Sent(sum(counts[::2]) + refused, refused)

    def _child(self, number: int, data: bytes, cpu: int) -> None:
        """The body of a process. It never returns to its caller."""
        code = 1
        try:
            os.sched_setaffinity(0, {cpu})
            self._send(number, data)
            code = 0
        finally:
            os._exit(code)

    def _send(self, number: int, data: bytes) -> None:
        sent, refused = 1 + 2 * number, 2 + 2 * number
        size = FRAMES * FRAME_SIZE
        own = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        own.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        places = struct.pack("4I", BLOCK, size // BLOCK, FRAME_SIZE, FRAMES)
        own.setsockopt(SOL_PACKET, PACKET_TX_RING, places)
        own.bind((self._device, 0))
        ring = mmap.mmap(own.fileno(), size)
        for start in range(0, size, FRAME_SIZE):
            struct.pack_into("I", ring, start + LENGTH_AT, len(data))
            ring[start + HEADER : start + HEADER + len(data)] = data
        # The first word of each frame is its owner.
        owners = memoryview(ring).cast("I")[:: FRAME_SIZE // 4]
        kernels = memoryview(struct.pack("I", SEND_REQUEST) * FRAMES).cast("I")
        while not self._shared[0]:
            owners[:] = kernels
            while True:
                try:
                    own.send(b"")
                    break
                except OSError as error:
                    # A packet was refused. It is still in the ring: the next call sends it.
                    if error.errno != errno.ENOBUFS:
                        raise
                    self._shared[refused] += 1
            self._shared[sent] += FRAMES
