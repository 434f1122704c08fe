# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=tcp: TCP and UDP over a cable, natively, both drivers in turn.

The ports of a driver are the ends of a cable; guest/tcp_bench.py measures there.
This module has the cases and makes rows, in megabits of payload per second.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from testbed.bench.in_turn import Cell, Figure, InTurn, Machine, collect
from testbed.bench.rows import Row, rows_of

BENCH = "tcp"
# Processor time of the guest, and what happens per MiB.
COST, EVENTS = "tcp-cost", "tcp-events"
# The end of the names of cases in which the stack splits packets.
OFF = "TSO off"
_REVERSE = "reverse"
_KIB, _MIB = 1 << 10, 1 << 20
# Bytes of a system call where the case does not say otherwise: those of iperf3.
_WRITE = 128 * _KIB
# The processor of the model is its own, and the guest's is busy: with a second one, a machine
# with two processors would measure how they are shared.
MACHINES = (Machine(1, shared=True),)
# Of a short measurement.
_PART = 16

# Cases in both directions: the peer receives, and sends.
_BOTH: tuple[tuple[str, dict[str, Any]], ...] = (
    ("1 flow", {}),
    ("4 flows", {"flows": 4}),
    ("16 flows", {"flows": 16}),
    ("window 16 KiB", {"buffer": 16 * _KIB, "bytes": 12 * _MIB}),
)
_ONE_WAY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("window 4 MiB", {"buffer": 4 * _MIB}),
    # Of the sender's queueing discipline.
    ("delay 2 ms", {"delay": "2ms"}),
)
_SMALL: dict[str, Any] = {"write": 128, "bytes": 4 * _MIB}
# Where the card splits packets: these are shorter than a frame, or split as datagrams.
_WITH_OFFLOADS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("writes 128 bytes", _SMALL),
    ("writes 128 bytes no delay", {**_SMALL, "nodelay": True}),
    ("UDP USO", {"kind": "udp"}),
)


def _cell(name: str, more: dict[str, Any], *, reverse: bool, segmentation: bool) -> Cell:
    words = [name, *([_REVERSE] if reverse else []), *([] if segmentation else [OFF])]
    return {"case": " ".join(words), "kind": "tcp", "flows": 1, "bytes": 64 * _MIB,
            "write": _WRITE, "reverse": reverse, "segmentation": segmentation, **more}  # fmt: skip


def cells(_: Machine) -> list[Cell]:
    """The cases. Those with offloads come first: a switch takes longer than a case."""
    found = []
    for segmentation in (True, False):
        for cases, ways in (
            (_BOTH, (False, True)),
            (_ONE_WAY, (False,)),
            (_WITH_OFFLOADS if segmentation else (), (False, True)),
        ):
            found += [_cell(name, more, reverse=reverse, segmentation=segmentation)
                      for name, more in cases for reverse in ways]  # fmt: skip
    return found


def figures(record: Mapping[str, Any]) -> Iterator[Figure]:
    """The figures in a line of the guest."""
    case = record["case"]
    yield "mbits", (BENCH, case, "Mbit/s")
    yield "cost", (COST, case, "ns")
    yield "retransmitted", (EVENTS, f"{case} retransmitted", "per MiB")
    yield "rx_no_descriptor", (EVENTS, f"{case} lost", "per MiB")
    yield "interrupts", (EVENTS, f"{case} interrupts", "per MiB")


def parse(lines: Iterable[str]) -> list[Row]:
    """Rows from the lines that the guest wrote, in the order of their first line."""
    return rows_of(collect(lines, figures))


TCP = InTurn(BENCH, "TCP over a cable", MACHINES, cells, parse)
# The same for a test, with less to send.
SHORT = replace(
    TCP, cells=lambda one: [{**cell, "bytes": cell["bytes"] // _PART} for cell in cells(one)]
)
