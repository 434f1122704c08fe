# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=forward: both drivers forward natively, in turn, in one guest.

guest/forward_bench.py measures there. This module has the cases and makes rows, in
nanoseconds per packet.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from testbed.bench.in_turn import Cell, Figure, InTurn, Machine, collect
from testbed.bench.rows import Row, Values, rows_of
from testbed.host.ui import say

BENCH, OPTIONS = "forward", "forward-option"
# Processor time of the guest per packet, and its growth from one queue to several
# queues with a processor each.
COST, SCALING, OPTIONS_COST = "forward-cost", "forward-scaling", "forward-option-cost"
OPTIONS_EVENTS = "forward-option-events"
# The same with so many packets under way, and what happens per packet.
WINDOW, WINDOW_COST, WINDOW_EVENTS = "window", "window-cost", "window-events"
EVENTS = ("lost", "drops", "requeues", "interrupts", "doorbells")
# The rules of the driver were chosen with some of them; 24, 48, 96 and 512 are others.
WINDOWS = (1, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 4096)
_FRAMES = 100_000
# Packets for a doorbell, of pktgen.
BURSTS = (8, 32)
_ONE, _MANY = "1 flow", "64 flows"


def cells(machine: Machine) -> list[Cell]:
    """The cases of a guest."""

    def cell(name: str, kind: str, **more: Any) -> Cell:
        return {"case": f"{name} {machine.suffix}", "kind": kind, "frames": _FRAMES, **more}

    if machine.queues:
        # One flow has one queue: the reference for many flows on several queues.
        return [cell(_ONE, "forward", flows=1), cell(_MANY, "forward", flows=64)]
    found = [cell(_ONE, "forward"), cell(_MANY, "forward", flows=64)]
    if machine.cpus > 1:
        return found
    found += [
        cell("drop", "drop", frames=2 * _FRAMES),
        # With another CPU for the process, the spread includes everything on two processors.
        cell("UDP sink", "sink"),
        cell("transmit", "transmit"),
        *[cell(f"transmit burst {burst}", "transmit", burst=burst) for burst in BURSTS],
        cell("latency", "latency", frames=4000),
    ]
    if machine.shared:
        found += [
            # A search is many measurements: a few of them are enough.
            cell("loss-free", "lossless", pairs=3),
            cell("GRO", "forward", option="GRO", frames=6 * _FRAMES),
        ]
    for window in WINDOWS:
        # A short loop takes its time per turn.
        frames = min(2 * _FRAMES, max(4 * _FRAMES * window // 128, _FRAMES // 20))
        found.append(cell(f"window {window}", "window", frames=frames, window=window))
    return found


MACHINES = tuple(
    Machine(cpus, shared, queues)
    for cpus, queues in ((1, 0), (2, 0), (2, 2))
    for shared in (False, True)
)


def figures(record: Mapping[str, Any]) -> Iterator[Figure]:
    """The figures in a line of the guest."""
    case, driver = record["case"], record["driver"]
    time, cost, events = BENCH, COST, ""
    if "missing" in record:
        say(f"    {case}, {driver}: not measured: {record['missing']}")
    elif "on" in record:
        time, cost, events = OPTIONS, OPTIONS_COST, OPTIONS_EVENTS
        case = case if driver == "rust" else f"{case}, C driver"
    elif "lost" in record:
        time, cost, events = WINDOW, WINDOW_COST, WINDOW_EVENTS
    yield "ns", (time, case, "ns")
    yield "cost", (cost, case, "ns")
    for part in ("median", "p99"):
        yield part, (time, f"{case} {part}", "ns")
    for part in EVENTS if events else ():
        yield part, (events, f"{case} {part}", "per 1000")


def parse(lines: Iterable[str]) -> list[Row]:
    """Rows from the lines that the guest wrote, in the order of their first line."""
    values = collect(lines, figures)
    _scaling(values)
    return rows_of(values)


def _scaling(values: Values) -> None:
    """The cost of many flows relative to one, from the same pair."""
    for (bench, case, unit), many in list(values.items()):
        if bench != COST or not case.startswith(_MANY) or "queues" not in case:
            continue
        rest = case.removeprefix(_MANY)
        alone = values[COST, _ONE + rest, unit]
        for rust, pairs in many.items():
            for pair in pairs.keys() & alone[rust].keys():
                ratio = pairs[pair] / alone[rust][pair]
                values[SCALING, rest.strip(), "times"][rust][pair] = ratio


FORWARD = InTurn(BENCH, "forwarding", MACHINES, cells, parse)
