# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=ablation: the driver in each setting, in one guest of either kind.

guest/ablation_bench.py measures in User-Mode Linux, in turn with the driver as it is, and
counts instructions in QEMU. Both kernels have the keys of configs/ablation.config.
"""

import os
from typing import Any

from insn import cost as insn_cost
from testbed.bench import guest
from testbed.bench.ablation import figures, section
from testbed.bench.ablation.settings import BASE, Setting, all_settings, cells, described
from testbed.bench.in_turn import Measured, failures
from testbed.bench.instructions import windows
from testbed.bench.rows import Row
from testbed.env import Env
from testbed.host.awake import awake
from testbed.host.ui import Failure, say
from testbed.workshop import Built

BENCH, PROGRAM = "ablation", "ablation_bench.py"
ROUNDS = 4
_CONFIG = "tools/testbed/configs/ablation.config"
_FILE = f"{BENCH}.jsonl"
# Frames whose instructions are counted, in each setting.
_COUNTED = 40_000
# Of a guest, at least; and of a round.
_LEAST_SECONDS, _SECONDS = 900, 400


def with_keys(env: Env) -> Env:
    """The same, with the fragment that has the keys."""
    extra = f"{env.settings.text('CONFIG_EXTRA')} {_CONFIG}".strip()
    return env.with_setting("CONFIG_EXTRA", extra)


def run(ready: Built, rounds: int) -> Measured:
    """Count instructions, measure the time; the rows of both."""
    found = Measured([], [], [])
    settings = all_settings()
    try:
        found.rows += _count(ready, settings)
    except Failure as error:
        found.failed.append(f"instructions: {error.on_one_line}")
    lines: list[str] = []
    try:
        lines = _time(ready, settings, rounds)
    except Failure as error:
        found.failed.append(f"time: {error.on_one_line}")
        path = ready.env.out / f"results/{_FILE}"
        lines = path.read_text().splitlines() if path.exists() else []
    found.failed += failures(lines)
    found.rows += figures.parse(lines)
    say("", *section.lines(found.rows))
    return found


def _count(ready: Built, settings: list[Setting]) -> list[Row]:
    # The driver as it is comes last once more: the spread of counts.
    order = [*settings, Setting(BASE)]
    plan = {"drivers": ["rust"], "counted": _COUNTED, "settings": described(order), "cells": []}
    module = insn_cost.MODULES["rust"]
    modules = {module: ready.kernels["perf"].module("rust")}
    title = f"counting instructions: {_COUNTED:,} frames in each of {len(order)} settings"
    outcome, counted = windows(ready, BENCH, PROGRAM, title, modules, cpus=1, plan=plan)
    whole = figures.whole(outcome.results.get(_FILE, "").splitlines(), counted)
    return figures.counted(
        [(one.label, insn_cost.cost(one, _COUNTED, {one.label: module})) for one in whole]
    )


def _time(ready: Built, settings: list[Setting], rounds: int) -> list[str]:
    env = ready.env
    plan: dict[str, Any] = {"pairs": rounds, "drivers": ["rust", "rust"], "cells": cells(),
                            "settings": described(settings)}  # fmt: skip
    title = f"{len(settings)} settings in User-Mode Linux, in turn with the driver as it is"
    (env.out / f"results/{_FILE}").unlink(missing_ok=True)
    with awake(sorted(os.sched_getaffinity(0))[:1], os.getpid()):
        outcome = guest.measure(
            ready.uml(BENCH), PROGRAM, f"{title}: {rounds} rounds", plan, failed_cases=2,
            timeout=max(_LEAST_SECONDS, _SECONDS * rounds), cpus=1, accel="native", ports=4,
            shared_tails=True, pinned=True,
        )  # fmt: skip
    return outcome.results.get(_FILE, "").splitlines()
