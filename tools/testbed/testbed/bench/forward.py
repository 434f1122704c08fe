# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=forward: both drivers forward natively, in turn, in one guest.

guest/forward_bench.py measures there the cases of forward.toml. This module makes rows, in
nanoseconds per packet.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.bench.in_turn import Cell, Figure, InTurn, Machine, collect
from testbed.bench.rows import Row, Values, rows_of
from testbed.host.ui import say

BENCH = "forward"
# Processor time of the guest per packet, and its growth from one queue to several
# queues with a processor each.
COST, SCALING = "forward-cost", "forward-scaling"
# The same with so many packets under way, and what happens per packet.
WINDOW, WINDOW_COST, WINDOW_EVENTS = "window", "window-cost", "window-events"
EVENTS = ("lost", "drops", "requeues", "interrupts", "doorbells")
_FRAMES = 100_000
_CASES: dict[str, dict[str, Cell]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
_ONE, _MANY = "1 flow", "64 flows"


def cells(machine: Machine) -> list[Cell]:
    """The cases of a guest."""
    if machine.queues:
        parts = ["queues"]
    else:
        alone = ["1 cpu", *(["1 cpu shared tails"] if machine.shared else []), "windows"]
        parts = ["default queues", *(alone if machine.cpus == 1 else [])]
    return [{"case": f"{name} {machine.suffix}", "frames": _FRAMES, **one}
            for part in parts for name, one in _CASES[part].items()]  # fmt: skip


MACHINES = tuple(
    Machine(cpus, shared, queues)
    for cpus, queues in ((1, 0), (2, 0), (2, 2))
    for shared in (False, True)
)


def figures(record: Mapping[str, Any]) -> Iterator[Figure]:
    """The figures in a line of the guest."""
    case = record["case"]
    time, cost, events = BENCH, COST, ""
    if "missing" in record:
        say(f"    {case}, {record['driver']}: not measured: {record['missing']}")
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
