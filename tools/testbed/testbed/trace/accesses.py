# SPDX-License-Identifier: GPL-2.0
"""Register accesses by phase, as the NIC model has counted them, of two drivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.host.ui import Failure

READ, WRITE = "read", "write"


@dataclass(frozen=True, order=True)
class Register:
    """A register, or one of an array."""

    offset: int
    name: str
    index: int | None = None


@dataclass(frozen=True)
class Use:
    """The accesses of a register within a phase."""

    reads: int = 0
    writes: int = 0
    # The value that was written last, in hexadecimal.
    written: str | None = None
    # The place of the first one among all accesses of the trace.
    first: int = 0

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of these accesses."""
        return (*([READ] if self.reads else []), *([WRITE] if self.writes else []))

    def with_that_of(self, other: Use | None) -> Use:
        """The accesses of two registers of an array."""
        if other is None:
            return self
        values = {one for one in (self.written, other.written) if one is not None}
        written = "various" if len(values) > 1 else values.pop() if values else None
        return Use(self.reads + other.reads, self.writes + other.writes, written)


@dataclass(frozen=True)
class Trace:
    """All accesses of a driver: the registers of each phase, in the order of the phases."""

    driver: str
    phases: Mapping[str, Mapping[Register, Use]]

    def accesses(self) -> set[Access]:
        """The accesses of all phases."""
        return {
            Access(self.driver, register, kind)
            for registers in self.phases.values()
            for register, use in registers.items()
            for kind in use.kinds
        }


@dataclass(frozen=True, order=True)
class Access:
    """Reads or writes of a register by a driver, however many."""

    driver: str
    register: Register
    kind: str


def read(driver: str, answer: Mapping[str, Any]) -> Trace:
    """The model's answer to `accesses`."""
    if not answer["complete"]:
        raise Failure(f"{driver}: the trace lacks accesses to pages that the guest has mapped")
    phases = {}
    for phase in answer["phases"]:
        phases[phase["name"]] = {
            Register(int(one["offset"], 16), one["name"], one["index"]):
            Use(one["reads"], one["writes"], one["written"], one["first"])
            for one in phase["registers"]
        }  # fmt: skip
    return Trace(driver, phases)


def lonely(traces: Sequence[Trace]) -> set[Access]:
    """The accesses of one of two drivers that the other does not make, in any phase."""
    makers: dict[tuple[Register, str], list[Access]] = {}
    for access in (one for trace in traces for one in trace.accesses()):
        makers.setdefault((access.register, access.kind), []).append(access)
    return {found[0] for found in makers.values() if len(found) == 1}


@dataclass(frozen=True)
class Row:
    """Neighbouring registers of an array that are used alike in a phase, or one register."""

    registers: Sequence[Register]
    # By driver.
    uses: Mapping[str, Use]
    # Kinds of access that only one driver makes in this phase, by driver; those that the other
    # makes in no phase.
    here: Mapping[str, tuple[str, ...]]
    ever: Mapping[str, tuple[str, ...]]

    @property
    def label(self) -> str:
        """The name, with the places in the array."""
        places = [one.index for one in self.registers if one.index is not None]
        return self.registers[0].name + (f"[{ranges(places)}]" if places else "")


def registers(traces: Iterable[Trace], phase: str) -> list[Register]:
    """The registers that one of the drivers uses in a phase, by offset."""
    return sorted({one for trace in traces for one in trace.phases.get(phase, {})})


def rows(traces: Sequence[Trace], phase: str) -> list[Row]:
    """A phase of two drivers, by offset."""
    alone = lonely(traces)
    used = {trace.driver: trace.phases.get(phase, {}) for trace in traces}
    groups: dict[tuple[Any, ...], Row] = {}
    for register in registers(traces, phase):
        kinds = {name: one.get(register, Use()).kinds for name, one in used.items()}
        here, ever = {}, {}
        for name in kinds:
            others = {kind for other in kinds if other != name for kind in kinds[other]}
            here[name] = tuple(kind for kind in kinds[name] if kind not in others)
            ever[name] = tuple(one for one in here[name] if Access(name, register, one) in alone)
        key = (register.name, *kinds.values(), *ever.values())
        known = groups.get(key, Row([], {name: Use() for name in used}, here, ever))
        uses = {
            name: use.with_that_of(used[name].get(register)) for name, use in known.uses.items()
        }
        groups[key] = Row([*known.registers, register], uses, here, ever)
    return list(groups.values())


def ranges(numbers: Sequence[int]) -> str:
    """Numbers in ascending order: 0-3,5. Those of equal distances: 0-60/4."""
    words, rest = [], list(numbers)
    while rest:
        step = rest[1] - rest[0] if len(rest) > 1 else 1
        ends = (n for n in range(1, len(rest)) if rest[n] - rest[n - 1] != step)
        count = next(ends, len(rest))
        if count == 1 or (step > 1 and count < 3):
            words.append(str(rest.pop(0)))
            continue
        words.append(f"{rest[0]}-{rest[count - 1]}" + (f"/{step}" if step > 1 else ""))
        rest = rest[count:]
    return ",".join(words)
