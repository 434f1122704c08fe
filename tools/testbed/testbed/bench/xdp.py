# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xdp: instructions per frame of each verdict, both drivers in one boot.

guest/xdp_bench.py runs the cases. The path is all that the kernel does for a frame, the program
with it, and the system calls of a socket's user, but not the user; the work of the marks that
surround a case is taken out.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from insn.cost import MODULES
from insn.counts import WindowCount
from testbed.bench.in_turn import Measured, failures
from testbed.bench.instructions import windows
from testbed.bench.rows import Row
from testbed.boot.card import CARDS, MODELLED
from testbed.host.ui import Failure
from testbed.workshop import Built

BENCH = "xdp"
FRAMES = 50_000
# With few under way each costs an interrupt, which takes long in an emulator.
_FEW, _FRAMES_OF_FEW = 16, 5_000
# Without a program, for comparison.
_NONE = "none"
# How many frames are under way; 0 if none of them comes out. The C driver loses some of those that
# it redirects if there are more.
_VERDICTS = {_NONE: 256, "pass": 256, "drop": 0, "tx": 256, "redirect": 64, "router": 256}
# A module in place of a program, which C has nothing for.
_OURS, _ROUTER = ("router",), "rust_xdp_router"
_SIZES = (60, 128, 512, 1514)
_UNDER_WAY = (1, 16, 64)
# Sockets that send frames back, by the size of their chunks: the C driver takes no frames of more
# than 1 KiB into chunks of 2 KiB.
_SOCKETS = {4096: _SIZES, 2048: (60,)}
# A user in Python, with rings of 256 frames.
_UNDER_WAY_OF_SOCKETS = (64, 16)
_NOTHING = "nothing"
PARTS = ("driver", "path")


def groups() -> list[dict[str, Any]]:
    """The cases by verdict: all lengths with many under way, and the least with fewer."""
    found: list[dict[str, Any]] = []
    for verdict, most in _VERDICTS.items():
        cells = [{"case": f"{verdict} {size}", "size": size, "window": most, "frames": FRAMES}
                 for size in _SIZES]  # fmt: skip
        if most:
            cells += [{"case": f"{verdict} {_SIZES[0]}, window {window}", "size": _SIZES[0],
                       "window": window, "frames": _FRAMES_OF_FEW if window <= _FEW else FRAMES}
                      for window in _UNDER_WAY if window < most]  # fmt: skip
        drivers = ["rust"] if verdict in _OURS else [*MODULES]
        found.append({"verdict": verdict, "drivers": drivers, "cells": cells})
    most, few = _UNDER_WAY_OF_SOCKETS
    for chunk, sizes in _SOCKETS.items():
        name = f"xsk {chunk},"
        cells = [{"case": f"{name} {size}", "size": size, "window": most, "frames": FRAMES}
                 for size in sizes]  # fmt: skip
        if sizes == _SIZES:
            cells.append({"case": f"{name} {sizes[0]}, window {few}", "size": sizes[0],
                          "window": few, "frames": _FRAMES_OF_FEW})  # fmt: skip
        found.append({"verdict": "xsk", "chunk": chunk, "drivers": [*MODULES], "cells": cells})
    return found


def run(ready: Built) -> Measured:
    """Count; what a verdict lacks is told, and takes no other one with it."""
    kernel = ready.kernels["perf"]
    modules = {CARDS[MODELLED].module(one): kernel.module(one) for one in MODULES}
    modules[_ROUTER] = kernel.build / "samples/rust/xdp_handlers" / f"{_ROUTER}.ko"
    plan = {"drivers": [*MODULES], "groups": groups()}
    title = "counting instructions of XDP"
    outcome, counted = windows(ready, BENCH, "xdp_bench.py", title, modules, cpus=1, ports=4,
                               plan=plan, failed_cases=2)  # fmt: skip
    lines = outcome.results.get(f"{BENCH}.jsonl", "").splitlines()
    return Measured(rows(lines, counted), failed(lines), [])


def failed(lines: Iterable[str]) -> list[str]:
    """The verdicts that failed, with their reasons."""
    return failures(json.dumps({"pair": 1, **json.loads(line)}) for line in lines)


def rows(lines: Iterable[str], counted: Sequence[WindowCount]) -> list[Row]:
    """Rows of what went right; each window has a line of the guest."""
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
