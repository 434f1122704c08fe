# SPDX-License-Identifier: GPL-2.0
"""make demo: both drivers forward packets in the same kernel, compared."""

import json
from dataclasses import asdict
from typing import Any

from testbed.bench import guest, instructions, report
from testbed.bench import record as records
from testbed.bench.instructions import Counted
from testbed.bench.results import Round, bulk_difference, combine, in_order, problems, ratios, table
from testbed.boot.card import CARDS
from testbed.boot.dmesg import Complaint
from testbed.boot.job import Outcome
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.host.ui import Failure, clock, say, since_start
from testbed.workshop import Built, built, default_config

# Enough for repeatable counts; TCG with the plugin is slower.
_COUNTED = 200_000
_REPEATS = 2
# Packets/s below which forwarding is taken for stuck.
_SLOWEST = 20_000
_CONFIG = "perf"


def _modules(env: Env, config: str) -> tuple[str, ...]:
    """The modules to build; none, which means all, for kernels whose modules may be others.

    The others are a tenth of a kernel's build.
    """
    other = config != _CONFIG or env.kdir is not None or env.overlay_off
    if other or env.settings.text("CONFIG_EXTRA"):
        return ()
    return CARDS[env.settings.text("CARD")].modules


def _rounds(outcome: Outcome) -> list[Round]:
    found, texts = [], outcome.results
    for stem in sorted(name.removesuffix(".answer") for name in texts if name.endswith(".answer")):
        try:
            answer = json.loads(texts[f"{stem}.answer"])
        except ValueError as error:
            raise Failure(f"the model's answer is no JSON: {texts[f'{stem}.answer']}") from error
        before, after = texts.get(f"{stem}.before", ""), texts.get(f"{stem}.after", "")
        counts = [int(word) for word in texts.get(f"{stem}.interrupts", "").split()]
        found.append(Round(stem.split("-")[1], answer, bulk_difference(before, after),
                           counts[1] - counts[0] if len(counts) == 2 else None))  # fmt: skip
    return found


def _add_counts(drivers: dict[str, dict[str, Any]], counted: Counted, frames: int) -> None:
    for window in counted.windows:
        record, cases = drivers[window.label], counted.costs[window.label].cases
        record["instructions_per_packet"] = round(cases["all"], 2)
        record["driver_instructions_per_packet"] = round(cases["driver"], 2)
        if not record["bulk_free_histogram"]:
            # The driver has no such counter: the plugin counted its frees. That run
            # is shorter, so the figures are scaled to the same number of frames.
            scale = record["forwarded"] / frames
            record["bulk_free_histogram"] = in_order(
                {str(n): round(calls * scale) for n, calls in window.consume_histogram().items()}
            )


def forward(
    ready: Built, names: list[str], frames: int, repeats: int, config: str
) -> tuple[dict[str, dict[str, Any]], list[Complaint]]:
    """Forward `frames` frames by each of the drivers, and `repeats` times in turn.

    Returns the drivers' figures, and the kernel's complaints.
    """
    accel = ready.accel(config)
    turns = " / ".join(names * repeats)
    title = f"forwarding: {frames * repeats:,} frames per driver, {turns}, {accel}"
    seconds = max(300, frames // _SLOWEST)
    variables = {"ROUNDS": turns.replace(" /", ""), "FRAMES": str(frames),
                 "TIMEOUT_MS": str(1000 * seconds)}  # fmt: skip
    limit = max(900, len(names) * repeats * seconds)
    outcome = guest.measure(ready.machine(config, "demo"), "forward", title, timeout=limit, cpus=1,
                        card=ready.env.settings.text("CARD"), accel=accel,
                        variables=variables)  # fmt: skip
    rounds = _rounds(outcome)
    drivers = {name: combine([one for one in rounds if one.driver == name]) for name in names}
    return drivers, outcome.complaints


def measure(
    ready: Built, frames: int, repeats: int = _REPEATS, config: str = _CONFIG
) -> tuple[dict[str, Any], list[Complaint]]:
    """Forward `frames` frames per driver in alternation, and count instructions.

    Returns the content of out/demo.json, and the kernel's complaints. User-Mode
    Linux runs on the machine's own processor, which cannot count instructions of
    one driver: there they stay unknown.
    """
    env, kernel = ready.env, ready.kernels[config]
    names, card = env.drivers, env.settings.text("CARD")
    for name in names:
        kernel.module(name, card)
    per_round = -(-frames // repeats)
    drivers, complaints = forward(ready, names, per_round, repeats, config)
    if config != UML:
        counted = min(_COUNTED, per_round)
        found = instructions.count(ready, "count", tuple(names), counted, card=card)
        _add_counts(drivers, found, counted)
    record = {
        "drivers": drivers,
        "ratio": ratios(drivers),
        "card": card,
        "accel": ready.accel(config),
        "conditions": asdict(records.Circumstances.now(env, kernel.release)),
    }
    return record, complaints


def main(env: Env) -> int:
    """Build, forward with each driver in turn, print and write the comparison."""
    frames, config = env.settings.number("FRAMES"), default_config(env)
    with built(env, config, modules=_modules(env, config)) as ready:
        record, complaints = measure(ready, frames, config=config)
    (env.out / "demo.json").write_text(json.dumps(record, indent=2) + "\n")
    drivers = record["drivers"]
    say("")
    say(*table(drivers, record["ratio"]))
    say("")
    wrong = [text for name in drivers for text in problems(name, drivers[name], frames)]
    say(*(f"wrong: {text}" for text in wrong))
    if env.settings.switch("RECORD") and not wrong and not complaints:
        content = {name: record[name] for name in ("drivers", "ratio")}
        records.keep(env, "demo", content, record["conditions"]["kernel"])
        report.renew(env.clone)
    say(f"written: {env.out / 'demo.json'}; all of it took {clock(since_start())}")
    return 1 if wrong or complaints else 0
