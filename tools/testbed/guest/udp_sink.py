# SPDX-License-Identifier: GPL-2.0
"""A process that receives the datagrams of the discard port, and counts them."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from senders import Wrong, udp_counters
from udp_batches import BATCH, messages, receive_batch

DISCARD = 9
# asm-generic/socket.h; the module socket does not have it.
SO_RCVBUFFORCE = 33
# Bytes of a socket's buffer: a reader that has to wait for a processor loses nothing.
BUFFER = 32 << 20


@contextmanager
def udp_sink(address: str) -> Iterator[None]:
    """Receive while the body runs."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        own.bind((address, DISCARD))
        child = os.fork()
        if child == 0:
            _read(own)
    try:
        yield
    finally:
        gone, _ = os.waitpid(child, os.WNOHANG)
        if not gone:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if gone:
        raise Wrong("the process that receives datagrams has ended")


def received() -> int:
    """The datagrams that processes have read so far."""
    return udp_counters(Path("/proc/net/snmp").read_text())["InDatagrams"]


def _read(own: socket.socket) -> None:
    """The process. It never returns to its caller."""
    try:
        batch = messages(BATCH)
        while True:
            receive_batch(own, batch)
    finally:
        os._exit(1)
