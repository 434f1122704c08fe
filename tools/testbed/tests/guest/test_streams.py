# SPDX-License-Identifier: GPL-2.0
"""Tests of the guest's senders and receivers of streams, between two of them here."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "guest/streams.py"
HERE = "127.0.0.1"


class End:
    """A process of streams.py."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, str(PROGRAM)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)  # fmt: skip

    def order(self, **fields: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(fields) + "\n")

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout
        return dict(json.loads(self.process.stdout.readline()))


@contextmanager
def ends() -> Iterator[tuple[End, End]]:
    """A sender and a receiver."""
    both = End(), End()
    try:
        yield both
    finally:
        for one in both:
            one.process.kill()
            one.process.communicate()


def streamed(sender: End, receiver: End, what: str = "", **order: Any) -> tuple[Any, Any]:
    """The answers of both ends to an order."""
    receiver.order(do=f"receive{what}", address=HERE, **order)
    port = receiver.answer()["port"]
    sender.order(do=f"send{what}", to=HERE, port=port, **order)
    return sender.answer(), receiver.answer()


@pytest.mark.parametrize(
    "order",
    [
        {"flows": 1, "write": 131072},
        {"flows": 1, "write": 128, "nodelay": True},
        {"flows": 4, "write": 131072},
        {"flows": 2, "write": 4096, "buffer": 16384},
    ],
)
def test_all_bytes_arrive_and_the_warm_ones_do_not_count(order: dict[str, Any]) -> None:
    with ends() as (sender, receiver):
        # The processes take one order after the other.
        for size in (1 << 20, 1 << 21):
            sent, found = streamed(sender, receiver, bytes=size, warm=size // 4, **order)
            assert sent.keys() == {"retransmitted"}
            # The warm-up ends within a read.
            assert size // 2 < found["bytes"] <= size - size // 4 + 4 * order["write"]
            assert found["seconds"] > 0


def test_all_datagrams_are_reported() -> None:
    with ends() as (sender, receiver):
        for size in (1 << 20, 3 << 20):
            sent, found = streamed(sender, receiver, " datagrams", bytes=size, warm=size // 8)
            assert sent["retransmitted"] >= 0
            assert found["bytes"] >= size // 2


def test_what_was_not_reported_is_sent_again_in_datagrams_of_a_frame() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, ends() as (sender, _):
        receiver.bind((HERE, 0))
        sender.order(do="send datagrams", to=HERE, port=receiver.getsockname()[1], bytes=100_000)
        data, address = receiver.recvfrom(1 << 17)
        assert len(data) == 1472
        window = 0
        while (window := window + len(data)) < 4 * 44 * 1472:
            data = receiver.recv(1 << 17)
        # No report: after a while, it comes again.
        receiver.recv(1 << 17)
        receiver.sendto(struct.pack("!Q", 100_000), address)
        assert sender.answer() == {"retransmitted": 4 * 44}


def test_an_error_is_an_answer_and_no_end() -> None:
    with socket.socket() as nobody:
        nobody.bind((HERE, 0))
        with ends() as (sender, receiver):
            order = {"flows": 1, "write": 1000, "bytes": 1000, "warm": 0}
            sender.order(do="send", to=HERE, port=nobody.getsockname()[1], **order)
            assert "send: " in sender.answer()["error"]
            # Too few bytes behind the warm-up.
            _, found = streamed(sender, receiver, **order | {"warm": 1000})
            assert "1000 bytes came, too few" in found["error"]
            assert streamed(sender, receiver, **order | {"bytes": 1 << 20})[1]["bytes"] > 1000
