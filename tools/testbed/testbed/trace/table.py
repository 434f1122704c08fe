# SPDX-License-Identifier: GPL-2.0
"""The accesses of two drivers as text, side by side, and as a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from testbed.trace.accesses import Row, Trace, Use, lonely, rows

_NAME = 26
_SIDE = 28
_LETTERS = {"read": "r", "write": "w"}
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
    for phase in phases(traces):
        found = rows(traces, phase)
        counts = ", ".join(
            f"{trace.driver} {_count(trace.phases.get(phase, {}))}" for trace in traces
        )
        lines += ["", f"{phase}: {counts} accesses"]
        sides = "".join(_heading(trace.driver) for trace in traces)
        lines += [f"  {'register':<{_NAME}}{sides}  only".rstrip()]
        lines += [f"  {row.label:<{_NAME}}{_sides(row)}  {_marks(row)}".rstrip() for row in found]
    return lines


def _count(registers: Mapping[Any, Use]) -> int:
    return sum(use.reads + use.writes for use in registers.values())


def _heading(driver: str) -> str:
    return f"{driver + ': r':>{_SIDE - 18}}{'w':>7}{'written':>11}"


def _sides(row: Row) -> str:
    return "".join(_side(use) for use in row.uses.values())


def _side(use: Use) -> str:
    return (f"{use.reads or '-':>{_SIDE - 18}}{use.writes or '-':>7}"
            f"{use.written or '':>11}")  # fmt: skip


def _marks(row: Row) -> str:
    marks = []
    for driver, kinds in row.here.items():
        ever = "".join(_LETTERS[kind] for kind in kinds if kind in row.ever[driver])
        here = "".join(_LETTERS[kind] for kind in kinds if kind not in row.ever[driver])
        words = [*([ever] if ever else []), *([f"({here})"] if here else [])]
        if words:
            marks.append(f"{driver} {' '.join(words)}")
    return ", ".join(marks)


def record(traces: Sequence[Trace]) -> dict[str, Any]:
    """The content of out/trace.json."""
    alone = lonely(traces)
    return {
        "drivers": [trace.driver for trace in traces],
        "phases": [
            {
                "name": phase,
                "registers": [
                    {
                        **asdict(register),
                        **{
                            trace.driver: asdict(trace.phases[phase][register])
                            for trace in traces
                            if register in trace.phases.get(phase, {})
                        },
                    }
                    for register in sorted(
                        {one for trace in traces for one in trace.phases.get(phase, {})}
                    )
                ],
            }
            for phase in phases(traces)
        ],
        "only": [
            {"driver": one.driver, "kind": one.kind, **asdict(one.register)}
            for one in sorted(alone)
        ],
    }
