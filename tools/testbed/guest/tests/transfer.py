# SPDX-License-Identifier: GPL-2.0
"""Sends or receives bytes over TCP and prints how many there were and their checksum."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import tempfile
import time

CHUNK = 1 << 16
PATIENCE = 60.0


def source(size: int) -> tuple[int, str]:
    """An unlinked file of bytes that do not repeat in step with packets."""
    block = os.urandom(1_000_003)
    digest = hashlib.blake2b()
    file, path = tempfile.mkstemp(dir="/tmp")
    os.unlink(path)
    left = size
    while left > 0:
        piece = block[:left]
        digest.update(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(file, view) :]
        left -= len(piece)
    os.lseek(file, 0, os.SEEK_SET)
    return file, digest.hexdigest()


def connect(address: str, port: int) -> socket.socket:
    """Connects; the receiver may not be listening yet."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((address, port), PATIENCE)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def send(address: str, port: int, size: int, how: str) -> None:
    """Connects and sends; the pages of sendfile go to the card as fragments."""
    file, digest = source(size)
    with connect(address, port) as peer:
        peer.settimeout(PATIENCE)
        if how == "sendfile":
            with os.fdopen(file, "rb") as stream:
                peer.sendfile(stream)
        else:
            sizes = iter(range(1, 1 << 30, 37))
            while piece := os.read(file, 1 + next(sizes) % 3000):
                peer.sendall(piece)
        peer.shutdown(socket.SHUT_WR)
        # Waiting for the end keeps the connection until all has arrived.
        peer.recv(1)
    print(size, digest)


def receive(address: str, port: int) -> None:
    """Accepts one connection and reads it to its end."""
    with socket.create_server((address, port)) as server:
        server.settimeout(PATIENCE)
        peer, _ = server.accept()
        peer.settimeout(PATIENCE)
        digest, size = hashlib.blake2b(), 0
        with peer:
            while piece := peer.recv(CHUNK):
                digest.update(piece)
                size += len(piece)
    print(size, digest.hexdigest())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["send", host, number, length, kind]:
            send(host, int(number), int(length), kind)
        case ["receive", host, number]:
            receive(host, int(number))
        case _:
            sys.exit("usage: transfer.py send HOST PORT BYTES sendfile|write | receive HOST PORT")
