# SPDX-License-Identifier: GPL-2.0
"""Rounds measured by a guest, design by design: from its lines to rows and sentences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from testbed.bench.guest import run_bench
from testbed.bench.rows import Row
from testbed.boot.job import Job
from testbed.boot.machine import Machine
from testbed.host.ui import Failure

# Seconds of sending: before packets count, and while they do.
Seconds = Mapping[str, float]
LONG: Seconds = {"warm": 0.1, "window": 0.4}
# Enough for a test.
SHORT: Seconds = {"warm": 0.02, "window": 0.05}


@dataclass(frozen=True)
class Pair:
    """Two designs, the block of their comparison, and the end of its case's name."""

    bench: str
    ours: str
    reference: str
    end: str = ""


@dataclass
class Found:
    """The results of a design in a case, all rounds together."""

    case: str
    design: str
    # Nanoseconds from one packet to the next, by round.
    ns: dict[int, float] = field(default_factory=dict)
    # Packets of the senders, and counts of other events.
    attempts: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def share(self, name: str) -> float:
        """Events of this name per packet."""
        return self.counts[name] / max(self.attempts, 1)

    def record(self) -> dict[str, Any]:
        """As out/xmit.json has it."""
        return {
            "case": self.case,
            "design": self.design,
            **times(self.ns),
            "packets": self.attempts,
            **{name: round(self.share(name), 6) for name in sorted(self.counts)},
        }


def times(ns: Mapping[int, float]) -> dict[str, float]:
    """The median of the times of rounds and their ends, as out/xmit.json has them."""
    found = {"ns": median(ns.values()), "ns_min": min(ns.values()), "ns_max": max(ns.values())}
    return {name: round(value, 2) for name, value in found.items()}


_OWN = frozenset({"round", "case", "design", "ns", "attempts"})


def parse(lines: Iterable[str]) -> list[Found]:
    """The results, in the order of their first lines."""
    found: dict[tuple[str, str], Found] = {}
    for line in lines:
        try:
            record = json.loads(line)
            key = (record["case"], record["design"])
            one = found.setdefault(key, Found(*key))
            one.ns[int(record["round"])] = float(record["ns"])
            one.attempts += int(record["attempts"])
            one.counts.update({name: int(record[name]) for name in record.keys() - _OWN})
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(f"a line of the benchmark makes no sense: {line.strip()}") from error
    return list(found.values())


def run(
    machine: Machine, job: Job, title: str, results: str, plan: Mapping[str, Any]
) -> list[Found]:
    """Boot a guest that goes through a plan; returns the complete results."""
    job = replace(job, variables={"PLAN": json.dumps(plan)})
    outcome = run_bench(machine, job, title, "xmit: ")
    found = parse(outcome.results.get(results, "").splitlines())
    complete(found, plan["cells"], plan["rounds"])
    return found


def complete(found: Sequence[Found], cells: Sequence[Mapping[str, Any]], rounds: int) -> None:
    """Raise an error unless every design of every cell was measured in every round."""
    known = {(one.case, one.design): one for one in found}
    for cell in cells:
        for design in cell["designs"]:
            one = known.get((cell["case"], design["name"]))
            if one is None or len(one.ns) != rounds:
                count = 0 if one is None else len(one.ns)
                raise Failure(
                    f"{cell['case']}, {design['name']}: {count} of {rounds} rounds were measured"
                )


def rows(found: Sequence[Found], pairs: Sequence[Pair]) -> list[Row]:
    """The comparisons, case by case."""
    known = {(one.case, one.design): one for one in found}
    result = []
    for case in dict.fromkeys(one.case for one in found):
        for pair in pairs:
            ours, reference = known.get((case, pair.ours)), known.get((case, pair.reference))
            if ours is not None and reference is not None:
                name = f"{case}{pair.end}"
                result.append(Row.of_pairs(pair.bench, name, "ns", ours.ns, reference.ns))
    return result


def sentences(title: str, found: Sequence[Found], labels: Mapping[str, str]) -> list[str]:
    """Every design of every case, with all that was counted, per 1000 packets."""
    names = sorted({name for one in found for name in one.counts})
    heads = ["Mpps", "ns", "per 1000:", *names]
    case = max((len(one.case) + 2 for one in found), default=0)
    label = max((len(text) + 2 for text in labels.values()), default=0)
    lines = ["", f"{title:<{case + label}}{columns(heads, heads)}"]
    cases, designs = list(dict.fromkeys(one.case for one in found)), list(labels)
    for one in sorted(found, key=lambda one: (cases.index(one.case), designs.index(one.design))):
        ns = median(one.ns.values())
        cells = [f"{1e3 / ns:.2f}", f"{ns:.1f}", "",
                 *[f"{1000 * one.share(name):,.1f}" for name in names]]  # fmt: skip
        lines.append(f"{one.case:<{case}}{labels[one.design]:<{label}}{columns(cells, heads)}")
    return lines


def columns(cells: Sequence[str], heads: Sequence[str]) -> str:
    """Cells of a table below its heads."""
    return "".join(f"{cell:>{max(len(head) + 2, 8)}}"
                   for cell, head in zip(cells, heads, strict=True))  # fmt: skip
