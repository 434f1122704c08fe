# SPDX-License-Identifier: GPL-2.0
"""Benchmarks of both drivers in turn in one guest: selected, booted, read.

Each machine (processors, transport) is one boot of User-Mode Linux in which
both drivers are loaded; a program of guest/ measures there. A benchmark gives its
cases, and turns the guest's lines into rows: ours is Rust, the reference is C.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.bench import guest
from testbed.bench.rows import Key, Row, Values, no_values
from testbed.host.awake import awake
from testbed.host.ui import Failure
from testbed.workshop import Built

SHARED = "shared tails"
# Of a pair; and of a guest, at least.
_SECONDS, _LEAST_SECONDS = 180, 900

Cell = dict[str, Any]
# A name in a line of the guest, and its row.
Figure = tuple[str, Key]


@dataclass(frozen=True)
class Machine:
    """A guest to measure in."""

    cpus: int
    shared: bool
    # Queue pairs of each port, each polled by a thread on a CPU of its own; 0
    # for the driver's default.
    queues: int = 0

    @property
    def needs(self) -> int:
        """The number of processors without which its cases make no sense.

        Threads that poll queues never yield: the model needs a processor besides theirs.
        """
        return self.cpus + 1 if self.queues else 1

    @property
    def suffix(self) -> str:
        """The end of its cases' names."""
        words = [f"{self.queues} queues"] if self.queues else []
        words.append(f"{self.cpus} cpu{'s' if self.cpus > 1 else ''}")
        return " ".join([*words, *([SHARED] if self.shared else [])])


@dataclass(frozen=True)
class InTurn:
    """A benchmark of both drivers."""

    name: str
    # The subject, for messages.
    title: str
    machines: Sequence[Machine]
    # The cases of a guest.
    cells: Callable[[Machine], list[Cell]]
    # Rows from the guest's lines, in the order of their first line.
    parse: Callable[[Iterable[str]], list[Row]]

    def plans(self, text: str) -> list[tuple[Machine, list[Cell]]]:
        """The machines with their cases: all, or those with one of these words in their names."""
        words = [word.strip() for word in text.split(",") if word.strip()]
        found = []
        for machine in self.machines:
            wanted = [cell for cell in self.cells(machine)
                      if not words or any(word in cell["case"] for word in words)]  # fmt: skip
            if wanted:
                found.append((machine, wanted))
        return found


def collect(lines: Iterable[str], figures: Callable[[Cell], Iterable[Figure]]) -> Values:
    """The figures in the guest's lines, in the order of their first line."""
    values = no_values()
    for line in lines:
        record = json.loads(line)
        if "failed" in record:
            continue
        for name, row in figures(record):
            if name in record:
                values[row][record["driver"] == "rust"][record["pair"]] = record[name]
    return values


def check(benches: Sequence[InTurn], text: str) -> None:
    """Refuse words that choose no case at all."""
    if not any(bench.plans(text) for bench in benches):
        known = sorted({cell["case"] for bench in benches for machine in bench.machines
                        for cell in bench.cells(machine)})  # fmt: skip
        raise Failure(f"CASES={text}: no case has that in its name", "there are:", *known)


@dataclass
class Measured:
    """The rows, and the cases without."""

    rows: list[Row]
    # The reasons.
    failed: list[str]
    skipped: list[str]


def run(bench: InTurn, ready: Built, rounds: int) -> Measured:
    """Boot, measure, and return the rows. A case that fails takes no other one with it."""
    found = Measured([], [], [])
    processors, drivers = len(os.sched_getaffinity(0)), ready.env.drivers
    for driver in drivers:
        ready.kernels["uml"].module(driver)
    for machine, wanted in bench.plans(ready.env.settings.text("CASES")):
        if machine.needs > processors:
            found.skipped += [f"{cell['case']}: needs {machine.needs} processors, here are "
                              f"{processors}" for cell in wanted]  # fmt: skip
            continue
        title = f"{bench.title} in User-Mode Linux, {machine.suffix}: {rounds} pairs"
        plan = {"pairs": rounds, "drivers": drivers, "cells": wanted, "queues": machine.queues}
        lines = measure(
            ready, bench.name, title, plan, _SECONDS * rounds, found,
            name=f"{bench.name}-{machine.suffix.replace(' ', '-')}", cpus=machine.cpus,
            ports=2 * len(drivers), shared_tails=machine.shared,
        )  # fmt: skip
        found.rows += bench.parse(lines)
    # A bench is a block of the table.
    found.rows.sort(key=lambda row: row.bench)
    return found


def measure(
    ready: Built, bench: str, title: str, plan: Mapping[str, Any], seconds: float, found: Measured,
    *, name: str, cpus: int, **job: Any,
) -> list[str]:  # fmt: skip
    """The lines of one guest; `found` gets what has failed. What it wrote before that counts."""
    path = ready.env.out / f"results/{bench}.jsonl"
    path.unlink(missing_ok=True)
    try:
        with awake(sorted(os.sched_getaffinity(0))[:cpus], os.getpid()):
            guest.measure(
                ready.uml(name), f"{bench}_bench.py", title, plan, failed_cases=2, cpus=cpus,
                timeout=max(_LEAST_SECONDS, seconds), accel="native", pinned=True, **job,
            )  # fmt: skip
    except Failure as error:
        found.failed.append(f"{name}: {error.on_one_line}")
    if not path.exists():
        return []
    lines = path.rename(path.with_stem(name)).read_text().splitlines()
    found.failed += failures(lines)
    return lines


def failures(lines: Iterable[str]) -> list[str]:
    """The cases that failed, with their reasons."""
    records = [json.loads(line) for line in lines]
    return [f"{one['case']}: {one['failed']} (pair {one['pair']}, exit code of the guest 2)"
            for one in records if "failed" in one]  # fmt: skip
