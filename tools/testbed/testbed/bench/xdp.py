# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xdp: instructions and processor time per frame of each verdict, both drivers.

guest/xdp_bench.py runs the cases, in QEMU to count instructions, and in User-Mode Linux, where
drivers take turns, for the processor time. The path is all that the kernel does for a frame, the
program with it, and the system calls of a socket's user, but not the user; the work of the marks
that surround a case is taken out. Interrupts cost more in User-Mode Linux than on a card: their
time is taken out, and has a row of its own.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from insn.cost import MODULES
from insn.counts import WindowCount
from testbed.bench import in_turn
from testbed.bench.ablation.figures import ALONE, INTERRUPT, MANY, interrupt
from testbed.bench.in_turn import Cell, InTurn, Machine, Measured, failures
from testbed.bench.instructions import windows
from testbed.bench.rows import Row, no_values, rows_of
from testbed.boot.card import CARDS, MODELLED
from testbed.host.ui import Failure
from testbed.workshop import Built

BENCH = "xdp"
# Processor time, and interrupts.
COST, EVENTS = "xdp-cost", "xdp-events"
# Frames whose instructions are counted, and of which the time is taken.
FRAMES, _FRAMES_OF_TIME = 50_000, 200_000
# With few under way each costs an interrupt, which takes long in an emulator; long ones take the
# model long.
_FEW, _SHARE_OF_FEW = 16, 10
# Without a program, for comparison.
_NONE = "none"
# How many frames are under way; 0 if none of them comes out. The C driver loses some of those that
# it redirects if there are more.
_VERDICTS = {_NONE: 256, "pass": 256, "drop": 0, "tx": 256, "redirect": 64, "router": 256}
# A module in place of a program, which C has nothing for.
_OURS, _ROUTER = ("router",), "rust_xdp_router"
_SIZES = (60, 128, 512, 1514)
_UNDER_WAY = (1, 16, 64)
# Frames in several buffers, of which a ring has room for some more than are under way. The C driver
# takes no program then.
_LONG, _MTU, _LONG_UNDER_WAY = 9000, 9000, 64
# Sockets that send frames back, by the size of their chunks: the C driver takes no frames of more
# than 1 KiB into chunks of 2 KiB.
_SOCKET, _SOCKETS = "xsk", {4096: _SIZES, 2048: (60,)}
# A user in Python, with rings of 256 frames.
_UNDER_WAY_OF_SOCKETS = (64, 16)
_NOTHING = "nothing"
PARTS = ("driver", "path")
# If interrupts take more than this share of a case's time, their estimate decides what is left.
_MOST = 0.5


def _case(name: str, size: int, window: int, frames: int, most: int, **more: Any) -> Cell:
    """A case, whose name has the frames under way unless they are as many as can be."""
    end = f", window {window}" if window < most else ""
    frames //= _SHARE_OF_FEW if 0 < window <= _FEW else 1
    return {"case": f"{name} {size}{end}", "size": size, "window": window, "frames": frames, **more}


def cells(frames: int = FRAMES) -> list[Cell]:
    """The cases, those of a verdict together: all lengths with many under way, the least with few.

    Of one with an MTU, it is that of both ports; of one with a chunk, a socket decides.
    """
    found: list[Cell] = []
    for name, most in _VERDICTS.items():
        own: Cell = {"verdict": name, "drivers": ["rust"] if name in _OURS else [*MODULES]}
        found += [_case(name, size, most, frames, most, **own) for size in _SIZES]
        found += [_case(name, _SIZES[0], window, frames, most, **own)
                  for window in _UNDER_WAY if window < most]  # fmt: skip
        if name not in _OURS:
            long = own | {"mtu": _MTU, "drivers": [*MODULES] if name == _NONE else ["rust"]}
            under_way = min(most, _LONG_UNDER_WAY)
            few = frames // _SHARE_OF_FEW
            found.append(_case(name, _LONG, under_way, few, under_way, **long))
    most, few = _UNDER_WAY_OF_SOCKETS
    for chunk, sizes in _SOCKETS.items():
        own = {"verdict": _SOCKET, "drivers": [*MODULES], "chunk": chunk}
        name = f"{_SOCKET} {chunk},"
        found += [_case(name, size, most, frames, most, **own) for size in sizes]
        if sizes == _SIZES:
            found.append(_case(name, sizes[0], few, frames, most, **own))
    return found


def _timed(_: Machine) -> list[Cell]:
    """The cases whose time is taken: that of a socket's user would hide all else."""
    return [cell for cell in cells(_FRAMES_OF_TIME) if cell["verdict"] != _SOCKET]


def run(ready: Built, rounds: int) -> Measured:
    """Count, and take the time. What a verdict lacks is told, and takes no other one with it."""
    rows, failed = list[Row](), list[str]()
    for _, wanted in COUNTED.plans(ready.env.settings.text("CASES")):
        rows, failed = _count(ready, wanted)
    timed = in_turn.run(TIMED, ready, rounds)
    return replace(timed, rows=rows + timed.rows, failed=failed + timed.failed)


def _count(ready: Built, wanted: Sequence[Cell]) -> tuple[list[Row], list[str]]:
    kernel = ready.kernels["perf"]
    modules = {CARDS[MODELLED].module(one): kernel.module(one) for one in MODULES}
    modules[_ROUTER] = kernel.build / "samples/rust/xdp_handlers" / f"{_ROUTER}.ko"
    plan = {"drivers": [*MODULES], "cells": wanted}
    title = "counting instructions of XDP"
    outcome, counted = windows(ready, BENCH, "xdp_bench.py", title, modules, cpus=1, ports=4,
                               plan=plan, failed_cases=2)  # fmt: skip
    lines = outcome.results.get(f"{BENCH}.jsonl", "").splitlines()
    return counts(lines, counted), failures(lines)


def counts(lines: Iterable[str], counted: Sequence[WindowCount]) -> list[Row]:
    """Rows of instructions, of what went right; each window has a line of the guest."""
    records = [one for one in map(json.loads, lines) if "failed" not in one]
    if len(records) != len(counted) or not all(one.complete for one in counted):
        raise Failure(f"{len(counted)} windows of {len(records)} cases were counted")
    idle: dict[str, int] = {}
    found: dict[tuple[str, str], dict[str, float]] = {}
    for record, window in zip(records, counted, strict=True):
        driver, case = record["driver"], record["case"]
        kernel = sum(window.by_module.values())
        if case == _NOTHING:
            idle[driver] = kernel
        elif not record["wrong"]:
            parts = (window.driver(MODULES[driver]), kernel - idle[driver])
            for part, count in zip(PARTS, parts, strict=True):
                found.setdefault((case, part), {})[driver] = count / record["frames"]
    return [
        Row.of_pairs(BENCH, f"{case} {part}", "instructions",
                     *({0: sides[one]} if one in sides else {} for one in ("rust", "c")))
        for (case, part), sides in found.items()
    ]  # fmt: skip


def times(lines: Iterable[str]) -> list[Row]:
    """Rows of processor time, beside the instructions of the path, without that of interrupts."""
    records = [one for one in map(json.loads, lines) if "failed" not in one]
    each = {name: _interrupt(records, name) for name in MODULES}
    values = no_values()
    for case in dict.fromkeys(one["case"] for one in records):
        found = [one for one in records if one["case"] == case]
        taken = [(each[one["driver"]] or math.inf) * one["interrupts"] for one in found]
        shares = [time / one["cost"] for time, one in zip(taken, found, strict=True)]
        for time, one in zip(taken, found, strict=True):
            is_ours, pair = one["driver"] == "rust", one["pair"]
            values[EVENTS, f"{case} interrupts", "per 1000"][is_ours][pair] = one["interrupts"]
            if median(shares) <= _MOST and time < one["cost"]:
                values[COST, f"{case} {PARTS[-1]}", "ns"][is_ours][pair] = one["cost"] - time
    return [*rows_of(values), Row(COST, INTERRUPT, "ns", each["rust"], each["c"], ())]


def _interrupt(records: Iterable[Mapping[str, Any]], driver: str) -> float | None:
    """Nanoseconds of an interrupt with a driver: frames one at a time against many of them."""
    loads = {f"{_NONE} {_SIZES[0]}, window 1": ALONE, f"{_NONE} {_SIZES[0]}": MANY}
    return interrupt({**one, "base": True, "load": loads[one["case"]]} for one in records
                     if one["driver"] == driver and one["case"] in loads)  # fmt: skip


TIMED = InTurn(BENCH, "XDP", (Machine(1, shared=True),), _timed, times)
COUNTED = replace(TIMED, cells=lambda _: cells())
