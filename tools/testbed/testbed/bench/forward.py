# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=forward: both drivers forward natively, in turn, in one guest.

Each machine (processors, transport) is one boot of User-Mode Linux in which
both drivers are loaded; guest/forward_bench.py measures there. This module
selects the cases and turns the results into rows: ours is Rust, the reference
is C, in nanoseconds per packet.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from testbed.bench.guest import run_bench
from testbed.bench.rows import Row
from testbed.boot.job import Job
from testbed.host.awake import awake
from testbed.host.ui import Failure, say
from testbed.workshop import Built

BENCH, OPTIONS = "forward", "forward-option"
# Processor time of the guest per packet, and its growth from one queue to several
# queues with a processor each.
COST, SCALING, OPTIONS_COST = "forward-cost", "forward-scaling", "forward-option-cost"
_FRAMES = 100_000
_SHARED = "shared tails"
_ONE, _MANY = "1 flow", "64 flows"


# By bench and case, whether it is the Rust driver, and pair.
Values = defaultdict[tuple[str, str], dict[bool, dict[int, float]]]


@dataclass(frozen=True)
class Machine:
    """A guest to measure in."""

    cpus: int
    shared: bool
    # Queue pairs of each port, each polled by a thread on a CPU of its own; 0
    # for the driver's default.
    queues: int = 0

    @property
    def suffix(self) -> str:
        """The end of its cases' names."""
        words = [f"{self.queues} queues"] if self.queues else []
        words.append(f"{self.cpus} cpu{'s' if self.cpus > 1 else ''}")
        return " ".join([*words, *([_SHARED] if self.shared else [])])


def _cell(machine: Machine, name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"case": f"{name} {machine.suffix}", "kind": kind, "frames": _FRAMES, **more}


def cells(machine: Machine) -> list[dict[str, Any]]:
    """The cases of a guest."""
    if machine.queues:
        # One flow has one queue: the reference for many flows on several queues.
        return [_cell(machine, name, "forward", flows=flows)
                for name, flows in ((_ONE, 1), (_MANY, 64))]  # fmt: skip
    many = _cell(machine, _MANY, "forward", flows=64)
    one = [_cell(machine, _ONE, "forward"), many]
    if machine.cpus > 1:
        return one
    one += [
        _cell(machine, "drop", "drop", frames=2 * _FRAMES),
        _cell(machine, "transmit", "transmit"),
        _cell(machine, "latency", "latency", frames=4000),
    ]
    if machine.shared:
        one += [
            # A search is many measurements: a few of them are enough.
            _cell(machine, "loss-free", "lossless", pairs=3),
            *[_cell(machine, name, "forward", option=name, frames=6 * _FRAMES)
              for name in ("bulk free", "SKB pool", "GRO")],
        ]  # fmt: skip
    return one


MACHINES = tuple(
    Machine(cpus, shared, queues)
    for cpus, queues in ((1, 0), (2, 0), (2, 2))
    for shared in (False, True)
)


def plans(text: str) -> list[tuple[Machine, list[dict[str, Any]]]]:
    """The machines with their cases: all, or those with one of these words in their names."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    found = []
    for machine in MACHINES:
        wanted = [cell for cell in cells(machine)
                  if not words or any(word in cell["case"] for word in words)]  # fmt: skip
        if wanted:
            found.append((machine, wanted))
    if not found:
        known = sorted({cell["case"] for machine in MACHINES for cell in cells(machine)})
        raise Failure(f"CASES={text}: no case has that in its name", "there are:", *known)
    return found


def run(ready: Built, rounds: int) -> list[Row]:
    """Boot, measure, and return the rows."""
    rows: list[Row] = []
    for machine, wanted in plans(ready.env.settings.text("CASES")):
        rows += _measure(ready, machine, wanted, rounds)
    # A bench is a block of the table: options have their own.
    return sorted(rows, key=lambda row: row.bench)


def _measure(
    ready: Built, machine: Machine, wanted: list[dict[str, Any]], rounds: int
) -> list[Row]:
    env = ready.env
    drivers = ["c"] if env.overlay_off else ["rust", "c"]
    for driver in drivers:
        ready.kernels["uml"].module(driver)
    plan = {"pairs": rounds, "drivers": drivers, "cells": wanted, "queues": machine.queues}
    job = Job(
        env.clone / "tools/testbed/guest/forward_bench.py",
        "none",
        timeout=900,
        cpus=machine.cpus,
        ports=2 * len(drivers),
        accel="native",
        variables={"PLAN": json.dumps(plan)},
        shared_tails=machine.shared,
        pinned=True,
    )
    name = f"forward-{machine.suffix.replace(' ', '-')}"
    uml = ready.uml(name)
    processors = sorted(os.sched_getaffinity(0))[: machine.cpus]
    title = f"forwarding in User-Mode Linux, {machine.suffix}: {rounds} pairs"
    with awake(processors, os.getpid()):
        outcome = run_bench(uml, job, title, "forward: ")
    text = outcome.results.get("forward.jsonl", "")
    (env.out / "results/forward.jsonl").rename(env.out / f"results/{name}.jsonl")
    return parse(text.splitlines())


def parse(lines: Iterable[str]) -> list[Row]:
    """Rows from the lines that the guest wrote, in the order of their first line."""
    values: Values = defaultdict(lambda: {True: {}, False: {}})
    for line in lines:
        record = json.loads(line)
        case, driver = record["case"], record["driver"]
        if "missing" in record:
            say(f"    {case}, {driver}: not measured: {record['missing']}")
        elif "on" in record:
            name = case if driver == "rust" else f"{case}, C driver"
            for bench, part in ((OPTIONS, "ns"), (OPTIONS_COST, "cost")):
                values[bench, name][record["on"]][record["pair"]] = record[part]
        elif "median" in record:
            for part in ("median", "p99"):
                key = (BENCH, f"{case} {part}")
                values[key][driver == "rust"][record["pair"]] = record[part]
        else:
            for bench, part in ((BENCH, "ns"), (COST, "cost")):
                if part in record:
                    values[bench, case][driver == "rust"][record["pair"]] = record[part]
    _scaling(values)
    return [Row.of_pairs(bench, case, "times" if bench == SCALING else "ns",
                         sides[True], sides[False])
            for (bench, case), sides in values.items()]  # fmt: skip


def _scaling(values: Values) -> None:
    """The cost of many flows relative to one, from the same pair."""
    for (bench, case), many in list(values.items()):
        if bench != COST or not case.startswith(_MANY) or "queues" not in case:
            continue
        rest = case.removeprefix(_MANY)
        alone = values[COST, _ONE + rest]
        for rust, pairs in many.items():
            for pair in pairs.keys() & alone[rust].keys():
                values[SCALING, rest.strip()][rust][pair] = pairs[pair] / alone[rust][pair]


def is_rate(row: Row) -> bool:
    """Whether a row measures a stream of packets rather than a single one."""
    return row.bench in (BENCH, OPTIONS) and not row.case.startswith("latency")


def sentences(rows: list[Row]) -> list[str]:
    """The rates, as packets per second before and after."""
    lines: list[str] = []
    known = [row for row in rows if is_rate(row) and row.ours and row.reference]
    for bench, before, after in ((BENCH, "C", "Rust"), (OPTIONS, "off", "on")):
        block = [row for row in known if row.bench == bench]
        if not block:
            continue
        lines += ["", f"{bench}, packets per second: {before} is before, {after} after",
                  f"{'case':<38}{'before':>11}{'after':>11}{'more':>11}{'ns':>10}"]  # fmt: skip
        for row in block:
            assert row.ours and row.reference
            old, new = 1e9 / row.reference, 1e9 / row.ours
            lines.append(
                f"{row.case:<38}{old:>11,.0f}{new:>11,.0f}{new - old:>+11,.0f}"
                f"{row.ours - row.reference:>+10.2f}"
            )
    return lines
