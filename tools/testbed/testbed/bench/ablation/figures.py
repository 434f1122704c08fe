# SPDX-License-Identifier: GPL-2.0
"""Rows of the ablation: a mechanism off alone, and added to the plainest form.

Ours is the driver with the mechanism, the reference without it, so that a ratio above 1 means
that it saves something. Processor time is without that of interrupts: one costs more in User-Mode
Linux than on a card. The time of one is that which the packets of window 1, one at a time, take
more than those of window 256, by the interrupts that they have more.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from insn.cost import Cost
from insn.counts import WindowCount
from testbed.bench.ablation.settings import (
    BASE,
    MECHANISMS,
    OTHERS,
    PLAINEST,
    added,
    before,
)
from testbed.bench.rows import Row
from testbed.host.ui import Failure

BENCH, COUNTS, TCP, EVENTS = "ablation", "ablation-insn", "ablation-tcp", "ablation-events"
CASES = ("driver", "memory", "all")
# The row of the time of one.
INTERRUPT = "an interrupt"
# In front of the names of mechanisms that are added.
ADDED = "added: "
# The loads that tell it.
ALONE, MANY = "window 1", "window 256"
# By round.
Series = dict[int, float]
# By case of the load and setting: of the driver as it is, and of the setting beside it.
Sides = Mapping[tuple[str, str], Mapping[bool, Series]]


def whole(lines: Iterable[str], windows: Sequence[WindowCount]) -> list[WindowCount]:
    """The windows in which no packet was lost; each has a line of the guest."""
    lost = [json.loads(line)["lost"] for line in lines]
    if len(lost) != len(windows) or not all(one.complete for one in windows):
        raise Failure(f"{len(windows)} windows of {len(lost)} measurements were counted")
    return [one for one, count in zip(windows, lost, strict=True) if not count]


def counted(costs: Sequence[tuple[str, Cost]]) -> list[Row]:
    """Rows from the settings in their order."""
    found: dict[str, list[Cost]] = defaultdict(list)
    for name, cost in costs:
        found[name].append(cost)

    def row(case: str, part: str, ours: Cost, reference: Cost) -> Row:
        both = ({0: ours.cases[part]}, {0: reference.cases[part]})
        return Row.of_pairs(COUNTS, f"{case}, {part}", "instructions", *both)

    base = found[BASE][0]
    rows = [row(BASE, part, base, found[BASE][-1]) for part in CASES]
    for name in (*MECHANISMS, *OTHERS, PLAINEST):
        rows += [row(name, part, base, one) for one in found[name] for part in CASES]
    for name in MECHANISMS:
        rows += [row(f"{ADDED}{name}", part, this, last)
                 for this in found[added(name)] for last in found[before(name)]
                 for part in CASES]  # fmt: skip
    return rows


def parse(lines: Iterable[str]) -> list[Row]:
    """Rows from the guest's lines."""
    records = [one for one in map(json.loads, lines) if "failed" not in one]
    each = interrupt(records)
    if each is None:
        return []
    sides: dict[tuple[str, str], dict[bool, Series]] = defaultdict(lambda: {True: {}, False: {}})
    events: dict[tuple[str, str], dict[bool, list[float]]] = defaultdict(
        lambda: {True: [], False: []}
    )
    for one in records:
        key = (one["load"], one["setting"])
        if one["load"] == ALONE:
            continue
        # Of TCP, the cost is per KiB, and events are per MiB.
        per = 1024 if one["load"].startswith("TCP") else 1
        work = one["cost"] - each * one["interrupts"] / per
        if work > 0:
            sides[key][one["base"]][one["pair"]] = work
        events[key][one["base"]].append(one["interrupts"])
    loads = list(dict.fromkeys(load for load, _ in sides))
    rows = [Row(EVENTS, INTERRUPT, "ns", each, None, ())]
    for load in loads:
        bench = TCP if load.startswith("TCP") else BENCH
        for name in (BASE, *MECHANISMS, *OTHERS, PLAINEST):
            found = sides[load, name]
            rows.append(Row.of_pairs(bench, f"{load}, {name}", "ns", found[True], found[False]))
        for name in MECHANISMS:
            rows.append(_added(bench, name, load, sides))
        unit = "per MiB" if bench == TCP else "per 1000"
        for name in (BASE, *MECHANISMS, *OTHERS, PLAINEST):
            both = events[load, name]
            rows.append(Row.of_events(EVENTS, f"{load}, {name}", unit, both[True], both[False]))
    rows = [row for row in rows if row.ours is not None or row.reference is not None]
    return sorted(rows, key=lambda row: (BENCH, TCP, EVENTS).index(row.bench))


def _added(bench: str, name: str, load: str, sides: Sides) -> Row:
    """A step from the plainest form: each side as a multiple of the driver as it is beside it."""
    typical = median(
        [value for (one, _), both in sides.items() if one == load for value in both[True].values()]
    )

    def series(setting: str) -> Series:
        both = sides[load, setting]
        return {pair: typical * both[False][pair] / both[True][pair]
                for pair in both[False].keys() & both[True].keys()}  # fmt: skip

    both = (series(added(name)), series(before(name)))
    return Row.of_pairs(bench, f"{load}, {ADDED}{name}", "ns", *both)


def interrupt(records: Iterable[Mapping[str, Any]]) -> float | None:
    """Nanoseconds of an interrupt, if packets were forwarded one at a time and together."""
    found: dict[str, dict[int, list[tuple[float, float]]]] = {ALONE: {}, MANY: {}}
    for one in records:
        if one["base"] and one["load"] in found:
            place = found[one["load"]].setdefault(one["pair"], [])
            place.append((one["cost"], one["interrupts"]))
    times = []
    for pair in found[ALONE].keys() & found[MANY].keys():
        (cost, count), many = found[ALONE][pair][0], found[MANY][pair]
        less, fewer = (median(values) for values in zip(*many, strict=True))
        if count > fewer:
            times.append((cost - less) / (count - fewer))
    return median(times) if times else None
