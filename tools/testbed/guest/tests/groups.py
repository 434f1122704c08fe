# SPDX-License-Identifier: GPL-2.0
"""Joins many multicast groups on an interface, by link-layer address, and holds
them until its input ends."""

from __future__ import annotations

import socket
import struct
import sys

SOL_PACKET = 263
PACKET_ADD_MEMBERSHIP = 1
PACKET_MR_MULTICAST = 0


def main(interface: str, count: int) -> None:
    """Joins 01:00:5e:02:00:01 and those that follow."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as holder:
        index = socket.if_nametoindex(interface)
        for number in range(1, count + 1):
            group = bytes((1, 0, 0x5E, 2, number >> 8, number & 255))
            request = struct.pack("=iHH8s", index, PACKET_MR_MULTICAST, len(group), group)
            holder.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, request)
        print("joined", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
