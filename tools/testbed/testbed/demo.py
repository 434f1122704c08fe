# SPDX-License-Identifier: GPL-2.0
"""make demo: both drivers forward packets in the same kernel, compared."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from testbed import insn, insn_bench
from testbed.boot import Job, Outcome
from testbed.dmesg import Complaint
from testbed.env import Env
from testbed.insn_cost import MODULES, Cost
from testbed.kernel import UML
from testbed.machine import describe_kernel, describe_machine
from testbed.results import Round, bulk_difference, combine, in_order, problems, ratios, table
from testbed.running import report_complaints
from testbed.session import Built, built, default_config
from testbed.ui import Failure, Step, clock, say, since_start

_MINIMUM = 1_000_000
# Counting needs no more to be repeatable, and TCG with the plugin is slower.
_COUNTED = 200_000
_REPEATS = 2


def _frames() -> int:
    text = os.environ.get("FRAMES") or str(_MINIMUM)
    if not text.isdigit() or int(text) < 1000:
        raise Failure(f"FRAMES={text}: the demo forwards at least 1000 frames per driver")
    return int(text)


def _switch(name: str) -> bool:
    text = os.environ.get(name) or "0"
    if text not in ("0", "1"):
        raise Failure(f"{name}={text}: {name} is 0 or 1")
    return text == "1"


def skb_pool() -> bool:
    """Whether SKB_POOL=1 asks for the pool of skb heads."""
    return _switch("SKB_POOL")


def xmit_llist() -> bool:
    """Whether XMIT_LLIST=1 asks for the combiner in front of qdiscs, with batches."""
    return _switch("XMIT_LLIST")


def _switches() -> dict[str, str]:
    """What the guest gets to know of it."""
    asked = {"SKB_POOL": skb_pool(), "XMIT_LLIST": xmit_llist()}
    return {name: "1" for name, on in asked.items() if on}


def _drivers(env: Env) -> list[str]:
    return ["c"] if env.overlay_off else ["rust", "c"]


def _forward(ready: Built, config: str, name: str, job: Job, step: Step) -> Outcome:
    def follow(line: str) -> None:
        step.detail = line.removeprefix("forward: ")

    machine = ready.machine(config, name)
    outcome = machine.run(job, follow)
    if outcome.code != 0:
        raise Failure(
            "the forwarding run failed",
            *outcome.output.strip().splitlines()[-3:],
            *[str(one) for one in outcome.complaints[:3]],
            f"console: {machine.log}",
        )
    step.detail = ""
    return outcome


def _rounds(outcome: Outcome) -> list[Round]:
    found = []
    for name in sorted(outcome.results):
        if not name.endswith(".answer"):
            continue
        stem = name.removesuffix(".answer")
        try:
            answer = json.loads(outcome.results[name])
        except ValueError as error:
            raise Failure(f"the NIC model's answer is no JSON: {outcome.results[name]}") from error
        before = outcome.results.get(f"{stem}.before", "")
        after = outcome.results.get(f"{stem}.after", "")
        found.append(Round(stem.split("-")[1], answer, bulk_difference(before, after)))
    return found


def _job(env: Env, drivers: list[str], frames: int, repeats: int, accel: str) -> Job:
    variables = {"ROUNDS": " ".join(drivers * repeats), "FRAMES": str(frames)}
    variables.update(_switches())
    script = env.clone / "tools/testbed/guest/forward"
    return Job(script, "none", timeout=900, cpus=1, accel=accel, variables=variables)


def _add_counts(
    drivers: dict[str, dict[str, Any]], windows: list[insn.WindowCount], frames: int
) -> None:
    for window in windows:
        record = drivers.get(window.label)
        if record is None or not window.complete:
            continue
        kernel = sum(window.by_module.values())
        record["instructions_per_packet"] = round(kernel / frames, 2)
        driver = window.driver(MODULES[window.label])
        record["driver_instructions_per_packet"] = round(driver / frames, 2)
        if not record["bulk_free_histogram"]:
            # A driver without such a counter: the plugin saw its frees. The
            # counted run is shorter, so the figures are scaled to the same
            # number of frames.
            scale = record["forwarded"] / frames
            record["bulk_free_histogram"] = in_order(
                {str(n): round(calls * scale) for n, calls in window.consume_histogram().items()}
            )


def measure(
    ready: Built, frames: int, repeats: int = _REPEATS, config: str = "perf"
) -> tuple[dict[str, Any], list[Complaint]]:
    """Forward `frames` frames per driver in alternation, and count instructions.

    Returns the record that out/demo.json holds, and what the kernel complained
    about. User-Mode Linux runs on the machine's own processor, which does not
    count instructions of one driver: there they stay unknown.
    """
    env, kernel = ready.env, ready.kernels[config]
    names = _drivers(env)
    for name in names:
        kernel.module(name)
    per_round = -(-frames // repeats)
    accel = ready.accel(config)
    title = f"forwarding: {frames:,} frames per driver, {' / '.join(names * repeats)}"
    with Step(f"{title}, {accel}") as step:
        outcome = _forward(ready, config, "demo", _job(env, names, per_round, repeats, accel), step)
    rounds = _rounds(outcome)
    drivers = {name: combine([one for one in rounds if one.driver == name]) for name in names}
    costs: dict[str, Cost] = {}
    if config != UML:
        counted = min(_COUNTED, per_round)
        costs, windows = insn_bench.count(
            ready, "count", tuple(names), counted, variables=_switches()
        )
        _add_counts(drivers, windows, counted)
    record = {
        "drivers": drivers,
        "ratio": ratios(drivers),
        "cost": {name: cost.record() for name, cost in costs.items()},
        "skb_pool": skb_pool(),
        "xmit_llist": xmit_llist(),
        "kernel": describe_kernel(env, kernel),
        "machine": describe_machine(accel),
    }
    return record, outcome.complaints


def demo(env: Env) -> int:
    """Build, forward with each driver in turn, print and write the comparison."""
    frames, config = _frames(), default_config()
    if config == "debug":
        raise Failure("CONFIG=debug: the demo measures, and that kernel is slow", "leave it out")
    with built(env, config) as ready:
        record, complaints = measure(ready, frames, config=config)
    _write(env.out / "demo.json", record)
    drivers = record["drivers"]
    say("")
    for line in table(drivers, record["ratio"]):
        say(line)
    say("")
    wrong = [text for name in drivers for text in problems(name, drivers[name], frames)]
    for text in wrong:
        say(f"wrong: {text}")
    report_complaints(complaints)
    say(f"written: {env.out / 'demo.json'}; all of it took {clock(since_start())}")
    return 1 if wrong or complaints else 0


def _write(path: Path, record: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=2) + "\n")
    part.replace(path)
