# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit-sim: simulate, find the saturation of each design, draw."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from testbed.bench.xmit import plot
from testbed.host.ui import Step, say
from txsim import calibrate, saturation, seed
from txsim.costs import SEED, Costs
from txsim.designs import BATCH, COMBINER, DESIGNS, LLIST, LOCK, Design
from txsim.simulate import Outcome, simulate

# The results of the benchmark, in the folder out.
FIGURES = "xmit.json"
_RESULT = "xmit-sim.json"
# Senders on one queue.
_ONE_QUEUE = (1, 2, 4, 8, 16, 32, 64, 128, 240, 480)
# The designs that feed a qdisc.
_QUEUED = (LOCK, LLIST, COMBINER, BATCH)


def _costs(out: Path) -> tuple[Costs, calibrate.Figures]:
    path = out / FIGURES
    if not path.exists():
        say(f"    no {path.name}: costs are assumed; make bench ONLY=xmit measures them")
        return Costs(), {}
    parameters, figures = calibrate.read(path)
    return calibrate.calibrate(parameters, figures), figures


def tables() -> dict[str, list[str]]:
    """The recorded tables: predictions against published measurements."""
    with Step("simulating with estimates that are wrong by a quarter"):
        found = seed.sensitivity()
    return {"seed": seed.table(seed.check()), "sensitivity": seed.sensitivity_table(found)}


def _record(outcome: Outcome) -> dict[str, Any]:
    """A run as out/xmit-sim.json has it."""
    return {
        "senders": outcome.senders,
        "pps": round(outcome.pps),
        "busy": {"lock": round(outcome.lock, 3), "head": round(outcome.head, 3),
                 "senders": round(outcome.think, 3)},
        "ns": {name: round(value, 1) for name, value in saturation.parts(outcome).items()},
        "doorbells": round(outcome.doorbells, 4),
        "contended": round(outcome.contended, 4),
        "dropped": round(outcome.dropped, 3),
        "batches": dict(sorted(outcome.batches.items())),
        "latencies": dict(sorted(outcome.latencies.items())),
    }  # fmt: skip


def run(out: Path) -> list[Path]:
    """Simulate with the known costs of this machine; returns the files written."""
    single: dict[Design, list[Outcome]] = {}
    many: dict[tuple[str, Design], list[float]] = {}
    with Step("simulating 1 to 480 senders") as step:
        step.detail = "calibrating"
        costs, figures = _costs(out)
        known = calibrate.predictions(costs, figures)
        for design in DESIGNS:
            step.detail = f"one queue, {design.label}"
            single[design] = [simulate(design, senders, costs) for senders in _ONE_QUEUE]
        step.detail = "the seed's machine"
        checks = seed.check()
        for check, design in product(checks, _QUEUED):
            step.detail = f"{seed.QUEUES} queues, {check.placed}, {design.label}"
            there = replace(SEED, transfer=check.transfer)
            many[check.placed, design] = [seed.rate(design, there, n) for n in seed.CURVE]
        step.detail = ""
    lines = ["\nxmit-sim: this machine, ns per packet", *calibrate.table(known)] if known else []
    lines += [
        f"\nxmit-sim: Mpps of one queue, a line takes {costs.transfer:.0f} ns; "
        f"end: {_ONE_QUEUE[-1]} senders",
        *saturation.table(single),
        f"\nxmit-sim: {seed.SENDERS} senders, {seed.QUEUES} queues, Mpps before and after",
        *seed.table(checks),
    ]
    for line in lines:
        say(line)
    record = {
        "costs": asdict(costs),
        "calibrated": bool(figures),
        "one_queue": {design.name: [_record(one) for one in outcomes]
                      for design, outcomes in single.items()},
        "seed": [{**asdict(one), "transfer": round(one.transfer, 1),
                  "predicted": round(one.predicted)} for one in checks],
        "many_queues": [{"design": design.name, "placed": placed, "senders": seed.CURVE,
                         "pps": [round(rate) for rate in rates]}
                        for (placed, design), rates in many.items()],
    }  # fmt: skip
    path = out / _RESULT
    path.write_text(json.dumps(record, indent=1) + "\n")
    return [path, plot.one_queue(single, dict(figures), out), plot.many_queues(many, checks, out)]
