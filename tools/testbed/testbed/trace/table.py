# SPDX-License-Identifier: GPL-2.0
"""The accesses of two drivers as text, side by side, and as a record."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from testbed.trace.accesses import Row, Trace, lonely, registers, rows

_NAME = 26
LEGEND = (
    "r, w: reads, writes; written: the value written last. The last column has accesses that",
    "only one driver makes: in this phase in brackets, in no phase at all without.",
)


def phases(traces: Sequence[Trace]) -> list[str]:
    """The phases of both, in their order."""
    return list(dict.fromkeys(name for trace in traces for name in trace.phases))


def text(traces: Sequence[Trace]) -> list[str]:
    """A table for each phase."""
    lines = list(LEGEND)
    heads = "".join(_side(f"{trace.driver}: r", "w", "written") for trace in traces)
    for phase in phases(traces):
        counts = [(trace.driver, trace.phases.get(phase, {}).values()) for trace in traces]
        sums = ", ".join(f"{driver} {sum(use.reads + use.writes for use in uses)}"
                         for driver, uses in counts)  # fmt: skip
        lines += ["", f"{phase}: {sums} accesses", f"  {'register':<{_NAME}}{heads}  only"]
        for row in rows(traces, phase):
            sides = "".join(_side(use.reads or "-", use.writes or "-", use.written or "")
                            for use in row.uses.values())  # fmt: skip
            lines.append(f"  {row.label:<{_NAME}}{sides}  {_marks(row)}".rstrip())
    return lines


def _side(reads: object, writes: object, written: str) -> str:
    return f"{reads!s:>10}{writes!s:>7}{written:>11}"


def _marks(row: Row) -> str:
    marks = []
    for driver, kinds in row.here.items():
        ever = "".join(kind[0] for kind in kinds if kind in row.ever[driver])
        here = "".join(kind[0] for kind in kinds if kind not in row.ever[driver])
        words = [ever, f"({here})" if here else ""]
        if kinds:
            marks.append(f"{driver} {' '.join(filter(None, words))}")
    return ", ".join(marks)


def record(traces: Sequence[Trace]) -> dict[str, Any]:
    """The content of out/trace.json."""
    found = []
    for phase in phases(traces):
        used = [
            {**asdict(register), **{trace.driver: asdict(trace.phases[phase][register])
             for trace in traces if register in trace.phases.get(phase, {})}}
            for register in registers(traces, phase)
        ]  # fmt: skip
        found.append({"name": phase, "registers": used})
    return {
        "drivers": [trace.driver for trace in traces],
        "phases": found,
        "only": [
            {"driver": one.driver, "kind": one.kind, **asdict(one.register)}
            for one in sorted(lonely(traces))
        ],
    }
