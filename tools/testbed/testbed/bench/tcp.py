# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=tcp: TCP and UDP over a cable, natively, both drivers in turn.

The ports of a driver are the ends of a cable; guest/tcp_bench.py measures there the
cases of tcp.toml. This module makes rows, in megabits of payload per second.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.bench.in_turn import Cell, Figure, InTurn, Machine, collect
from testbed.bench.rows import Row, rows_of

BENCH = "tcp"
# Processor time of the guest, and what happens per MiB.
COST, EVENTS = "tcp-cost", "tcp-events"
# The end of the names of cases in which the stack splits packets.
OFF = "TSO off"
_REVERSE = "reverse"
# Bytes of a case, and of a system call as in iperf3, where the case does not say otherwise.
_BYTES, _WRITE = 64 << 20, 128 << 10
# The processor of the model is its own, and the guest's is busy: with a second one, a machine
# with two processors would measure how they are shared.
MACHINES = (Machine(1, shared=True),)
# Of a short measurement.
_PART = 16

_CASES: dict[str, dict[str, Cell]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def _cell(name: str, more: Cell, *, reverse: bool, segmentation: bool) -> Cell:
    words = [name, *([_REVERSE] if reverse else []), *([] if segmentation else [OFF])]
    return {"case": " ".join(words), "kind": "tcp", "flows": 1, "bytes": _BYTES,
            "write": _WRITE, "reverse": reverse, "segmentation": segmentation, **more}  # fmt: skip


def cells(_: Machine) -> list[Cell]:
    """The cases. Those with offloads come first: a switch takes longer than a case."""
    return [
        _cell(name, more, reverse=reverse, segmentation=segmentation)
        for segmentation in (True, False)
        for part, cases in _CASES.items()
        if segmentation or part != "with offloads"
        for name, more in cases.items()
        for reverse in ((False,) if part == "one way" else (False, True))
    ]


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
