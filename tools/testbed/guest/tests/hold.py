# SPDX-License-Identifier: GPL-2.0
"""Holds every frame that an interface receives, and reads none, until a signal ends it.

Prints a line as soon as it does. What it holds keeps its memory: receive buffers
do not come back to the driver.
"""

from __future__ import annotations

import signal
import socket
import sys

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
ROOM = 256 << 20


def main() -> None:
    """Takes the name of the interface."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as holder:
        holder.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        holder.bind((sys.argv[1], ETH_P_ALL))
        print("holds", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
