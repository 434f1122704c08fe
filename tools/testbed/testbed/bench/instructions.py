# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=insn: instructions per forwarded or sent packet, both drivers in one boot."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from insn import cost as insn_cost
from insn import counts
from insn.cost import MODULES, RECORD, Cost
from insn.symbols import UNKNOWN
from testbed.bench.guest import measure
from testbed.bench.rows import Row
from testbed.boot.card import CARDS, MODELLED
from testbed.boot.job import Outcome
from testbed.host.ui import say
from testbed.workshop import Built

# Counts hardly vary from run to run, so few runs and frames are enough. The record and runs
# compared with it use the same number, since starting and stopping count too.
FRAMES = 100_000
ROUNDS = 3
_DRIVERS = ("rust", "c")


class Counted(NamedTuple):
    """The counts of one boot."""

    costs: dict[str, Cost]
    windows: list[counts.WindowCount]
    # The share of time for which the machine waited for a processor.
    waited: float


def windows(
    ready: Built,
    name: str,
    program: str,
    title: str,
    modules: Mapping[str, Path],
    **more: Any,
) -> tuple[Outcome, list[counts.WindowCount]]:
    """Run a program of guest/ in QEMU with the plugin that counts instructions."""
    system_map = ready.kernels["perf"].build / "System.map"
    report = ready.env.out / f"insn-{name.removeprefix('insn-')}.json"
    report.unlink(missing_ok=True)
    plugin = counts.plugin_arguments(ready.tools / "libinsn_plugin.so", report, system_map)
    outcome = measure(ready.vm("perf", name), program, title, timeout=900, plugin=plugin, **more)
    return outcome, counts.analyse(report, system_map, modules)


def count(
    ready: Built,
    name: str,
    drivers: tuple[str, ...] = _DRIVERS,
    frames: int = FRAMES,
    card: str = MODELLED,
    without: Collection[str] = (),
    variables: Mapping[str, str] | None = None,
) -> Counted:
    """Boot once and count the instructions of each driver for `frames` frames.

    The cost of all does not count modules that are left out.
    """
    turns = {"ROUNDS": " ".join(drivers), "FRAMES": str(frames), "COUNT": "1"}
    names = {driver: CARDS[card].module(driver) for driver in drivers}
    modules = {names[one]: ready.kernels["perf"].module(one, card) for one in drivers}
    title = f"counting instructions, {name}: {frames:,} frames per driver, {' / '.join(drivers)}"
    outcome, found = windows(ready, name, "forward", title, modules, cpus=1, card=card,
                             variables={**turns, **(variables or {})})  # fmt: skip
    return Counted(insn_cost.costs(found, frames, names, without), found, outcome.waited)


def run(ready: Built) -> list[Row]:
    """Count, print, draw, and renew the record if RECORD=1 asks for it."""
    runs = [count(ready, "bench") for _ in range(ready.env.settings.number("ROUNDS", ROUNDS))]
    found = _by_driver(runs)
    # Frames that pktgen sends. Its own code is left out.
    sent = _by_driver(
        [count(ready, "transmit", variables={"TRANSMIT": "1"}, without=(UNKNOWN,)) for _ in runs]
    )
    for name in _DRIVERS:
        say("", *insn_cost.top(found[name][0], MODULES[name]))
        apart = ", ".join(
            f"{case} {insn_cost.spread(found[name], case):.4%}" for case in insn_cost.JUDGED
        )
        say(f"{MODULES[name]}: {len(runs)} runs, {FRAMES:,} frames each, apart by {apart}")
    record = ready.env.clone / RECORD
    if ready.env.settings.switch("RECORD"):
        # Any of these runs of the Rust driver may come again: its record is a limit.
        limits = {"rust": insn_cost.worst(found["rust"]), "c": insn_cost.typical(found["c"])}
        insn_cost.save(record, limits, ready.kernels["perf"].release, FRAMES)
        say(f"written: {record}")
    else:
        verdicts = insn_cost.judge(insn_cost.load(record), found["rust"][0])
        say(*(f"record, {case}: {wrong or 'kept'}" for case, wrong in verdicts.items()))
    return [*insn_cost.rows(found), *insn_cost.transmit_rows(sent)]


def _by_driver(runs: list[Counted]) -> dict[str, list[Cost]]:
    return {name: [one.costs[name] for one in runs] for name in _DRIVERS}
