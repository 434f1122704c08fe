# SPDX-License-Identifier: GPL-2.0
"""Rounds of a benchmark of transmission, each with all designs, in varying order.

The plan comes in the variable PLAN as JSON: the number of rounds, the seconds of
warm-up and measurement, and cells, each with the designs that it compares.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from senders import Wrong, wait_for

# The minimum of packets for a valid time. On a busy machine the guest may not run at all
# during a measurement.
LEAST = 100
# Pauses of some milliseconds affect one or two parts only.
PARTS = 5

# The cell, the design, and the seconds of warm-up and measurement.
Measure = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, float]], dict[str, float]]


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"xmit: {text}", flush=True)


def nanoseconds(count: Callable[[], int], seconds: Mapping[str, float]) -> float:
    """The time from one packet to the next while senders run: the median of some parts."""
    time.sleep(seconds["warm"])
    return median(_part(count, seconds["window"] / PARTS) for _ in range(PARTS))


def _part(count: Callable[[], int], seconds: float) -> float:
    first, began = count(), time.monotonic_ns()
    time.sleep(seconds)
    wait_for(lambda: count() >= first + LEAST, f"fewer than {LEAST} packets had come through")
    last, ended = count(), time.monotonic_ns()
    return (ended - began) / (last - first)


def _all(plan: Mapping[str, Any], measure: Measure, results: Path) -> None:
    rounds = int(plan["rounds"])
    for number in range(1, rounds + 1):
        for cell in plan["cells"]:
            say(f"round {number} of {rounds}: {cell['case']}")
            designs = cell["designs"]
            # Each is first equally often.
            turn = number % len(designs)
            for design in [*designs[turn:], *designs[:turn]]:
                record = {"pair": number, "case": cell["case"], "driver": design["name"]}
                try:
                    record |= measure(cell, design, plan["seconds"])
                except Wrong as error:
                    raise Wrong(f"{cell['case']}, {design['name']}: {error}") from error
                with results.open("a") as file:
                    file.write(json.dumps(record) + "\n")


def main(set_up: Callable[[], None], measure: Measure, results: Path) -> int:
    """Set up, measure, a line of JSON for each measurement; the exit code."""
    try:
        set_up()
        _all(json.loads(os.environ["PLAN"]), measure, results)
    except Wrong as error:
        say(f"error: {error}")
        return 1
    return 0
