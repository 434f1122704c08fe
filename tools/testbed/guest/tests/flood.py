# SPDX-License-Identifier: GPL-2.0
"""Sends frames past the queue discipline until the interface goes down, or a number of them.
Prints how many the driver has taken: of the others the sender was told."""

from __future__ import annotations

import errno
import socket
import sys
import time

SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20
# The driver's ring is full, or its queue is stopped for another reason.
BUSY = (errno.ENOBUFS, errno.EAGAIN)
GONE = (errno.ENETDOWN, errno.ENETUNREACH, errno.ENXIO)
# A frame of a type that is for experiments (IEEE 802), to nobody.
FRAME = bytes.fromhex("02feedfeedfe 02feedfeed01 88b5") + bytes(86)


def main(interface: str, limit: int, seconds: float) -> None:
    """Sends at most `limit` frames, for at most so long."""
    taken = 0
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        sender.bind((interface, 0))
        while taken < limit and time.monotonic() < end:
            try:
                sender.send(FRAME)
            except OSError as error:
                if error.errno in GONE:
                    break
                if error.errno not in BUSY:
                    raise
            else:
                taken += 1
    print(taken)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
