# SPDX-License-Identifier: GPL-2.0
"""UDP sockets that need few system calls.

One sendmmsg() sends many datagrams, as servers of QUIC do, and one recvmmsg() receives
many. Each goes through udp_sendmsg() or udp_recvmsg() of its own, and only the system
call is shared: in User-Mode Linux it takes longer than the way of a datagram through
the stack.
"""

from __future__ import annotations

import ctypes
import os
import socket

# The payload of netperf in the commit that added the list to __dev_xmit_skb().
PAYLOAD = 120
# Datagrams for a call.
BATCH = 256
# From linux/socket.h; Python lacks it.
MSG_WAITFORONE = 0x10000


class Piece(ctypes.Structure):
    """struct iovec"""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Message(ctypes.Structure):
    """struct mmsghdr, with its struct msghdr"""

    _fields_ = (
        ("name", ctypes.c_void_p), ("name_length", ctypes.c_uint),
        ("pieces", ctypes.POINTER(Piece)), ("pieces_length", ctypes.c_size_t),
        ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int), ("_padding", ctypes.c_int),
        ("length", ctypes.c_uint),
    )  # fmt: skip


_LIBC = ctypes.CDLL(None, use_errno=True)
_DATA = ctypes.create_string_buffer(PAYLOAD)
_PIECE = Piece(ctypes.addressof(_DATA), PAYLOAD)


def messages(number: int) -> ctypes.Array[Message]:
    """So many datagrams of zeros, for a socket that is connected; or room for some."""
    found = (Message * number)()
    for one in found:
        one.pieces, one.pieces_length = ctypes.pointer(_PIECE), 1
    return found


def send_batch(own: socket.socket, batch: ctypes.Array[Message]) -> int:
    """Send datagrams with one system call; returns how many it has taken."""
    return _count(_LIBC.sendmmsg(own.fileno(), batch, len(batch), 0))


def receive_batch(own: socket.socket, batch: ctypes.Array[Message]) -> int:
    """Wait for a datagram, and take as many as there are; returns their number."""
    return _count(_LIBC.recvmmsg(own.fileno(), batch, len(batch), MSG_WAITFORONE, None))


def _count(taken: int) -> int:
    if taken < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return taken
