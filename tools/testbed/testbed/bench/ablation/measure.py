# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=ablation: the driver in each setting, in one guest of either kind.

guest/ablation_bench.py measures in User-Mode Linux, in turn with the driver as it is, and
counts instructions in QEMU. Both kernels have the keys of configs/ablation.config.
"""

from insn import cost as insn_cost
from testbed.bench import in_turn
from testbed.bench.ablation import figures, section
from testbed.bench.ablation.settings import BASE, Setting, all_settings, cells, described
from testbed.bench.in_turn import Measured
from testbed.bench.instructions import windows
from testbed.bench.rows import Row
from testbed.env import Env
from testbed.host.ui import Failure, say
from testbed.workshop import Built

BENCH = "ablation"
ROUNDS = 4
_CONFIG = "tools/testbed/configs/ablation.config"
# Frames whose instructions are counted, in each setting.
_COUNTED = 40_000
# Of a round.
_SECONDS = 400


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
    plan = {"pairs": rounds, "drivers": ["rust", "rust"], "cells": cells(),
            "settings": described(settings)}  # fmt: skip
    title = f"{len(settings)} settings in User-Mode Linux, in turn with the driver as it is"
    lines = in_turn.measure(ready, BENCH, f"{title}: {rounds} rounds", plan, _SECONDS * rounds,
                            found, name=BENCH, cpus=1, ports=4, shared_tails=True)  # fmt: skip
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
    outcome, counted = windows(ready, BENCH, f"{BENCH}_bench.py", title, modules, cpus=1, plan=plan)
    whole = figures.whole(outcome.results.get(f"{BENCH}.jsonl", "").splitlines(), counted)
    return figures.counted(
        [(one.label, insn_cost.cost(one, _COUNTED, {one.label: module})) for one in whole]
    )
