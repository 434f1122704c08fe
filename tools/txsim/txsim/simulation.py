# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit-sim: simulate, tell where each design saturates, draw."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from testbed.bench.xmit import plot
from testbed.host.ui import Step, say
from txsim import calibrate, curves, saturation, seed
from txsim.costs import ASSUMED, Costs

# What the benchmark leaves for us, in the folder out.
FIGURES = "xmit.json"
_RESULT = "xmit-sim.json"


def _costs(out: Path) -> tuple[Costs, calibrate.Figures]:
    path = out / FIGURES
    if not path.exists():
        say(f"    no {path.name}: costs are assumed; make bench ONLY=xmit measures them")
        return ASSUMED, {}
    parameters, figures = calibrate.read(path)
    return calibrate.calibrate(parameters, figures), figures


def tables() -> dict[str, list[str]]:
    """The tables that are recorded: predictions against what others measured."""
    with Step("simulating with estimates that are wrong by a quarter"):
        found = seed.sensitivity()
    return {"seed": seed.table(seed.check()), "sensitivity": seed.sensitivity_table(found)}


def run(out: Path) -> list[Path]:
    """Simulate with what is known of this machine; returns the files written."""
    with Step("simulating 1 to 480 senders") as step:

        def tell(what: str) -> None:
            step.detail = what

        tell("calibrating")
        costs, figures = _costs(out)
        known = calibrate.predictions(costs, figures)
        single = curves.one_queue(costs, tell)
        tell("the seed's machine")
        checks = seed.check()
        many = curves.many_queues(checks, tell)
        step.detail = ""
    found = [saturation.saturation(design, outcomes) for design, outcomes in single.items()]
    if known:
        say("\nxmit-sim: this machine, ns per packet")
        for line in calibrate.table(known):
            say(line)
    say(
        f"\nxmit-sim: Mpps of one queue, a line takes {costs.transfer:.0f} ns; "
        f"end: {curves.ONE_QUEUE[-1]} senders"
    )
    for line in saturation.table(found):
        say(line)
    say(f"\nxmit-sim: {seed.SENDERS} senders, {seed.QUEUES} queues, Mpps before and after")
    for line in seed.table(checks):
        say(line)
    record = {
        "costs": asdict(costs),
        "calibrated": bool(figures),
        "one_queue": {design.name: [curves.outcome_record(one) for one in outcomes]
                      for design, outcomes in single.items()},
        "seed": [{**asdict(one.measured), "transfer": round(one.transfer, 1),
                  "predicted": round(one.predicted)} for one in checks],
        "many_queues": [one.record() for one in many],
    }  # fmt: skip
    path = out / _RESULT
    path.write_text(json.dumps(record, indent=1) + "\n")
    return [path, plot.one_queue(single, dict(figures), out), plot.many_queues(many, checks, out)]
