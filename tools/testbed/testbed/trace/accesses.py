# SPDX-License-Identifier: GPL-2.0
"""Register accesses by phase, as the NIC model has counted them, of two drivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    first, second = (
        {(one.register, one.kind): one for one in trace.accesses()} for trace in traces
    )
    return {
        one
        for ours, theirs in ((first, second), (second, first))
        for key, one in ours.items()
        if key not in theirs
    }


@dataclass(frozen=True)
class Row:
    """Neighbouring registers of an array that are used alike in a phase, or one register."""

    name: str
    indices: tuple[int, ...]
    # By driver.
    uses: Mapping[str, Use]
    # Kinds of access that only one driver makes in this phase, by driver; those that the other
    # makes in no phase.
    here: Mapping[str, tuple[str, ...]]
    ever: Mapping[str, tuple[str, ...]]

    @property
    def label(self) -> str:
        """The name, with the places in the array."""
        return self.name + (f"[{ranges(self.indices)}]" if self.indices else "")


def rows(traces: Sequence[Trace], phase: str) -> list[Row]:
    """A phase of two drivers, by offset."""
    alone = lonely(traces)
    used = {trace.driver: trace.phases.get(phase, {}) for trace in traces}
    groups: dict[tuple[Any, ...], list[Register]] = {}
    for register in sorted({one for registers in used.values() for one in registers}):
        kinds = {
            name: registers[register].kinds if register in registers else ()
            for name, registers in used.items()
        }
        here = {name: _without(kinds, name) for name in kinds}
        ever = {
            name: tuple(kind for kind in here[name] if Access(name, register, kind) in alone)
            for name in kinds
        }
        key = (register.name, *kinds.values(), *ever.values())
        groups.setdefault(key, []).append(register)
    return [_fold(members, used, alone) for members in groups.values()]


def _without(kinds: Mapping[str, tuple[str, ...]], name: str) -> tuple[str, ...]:
    others = {kind for other, found in kinds.items() if other != name for kind in found}
    return tuple(kind for kind in kinds[name] if kind not in others)


def _fold(
    members: Sequence[Register],
    used: Mapping[str, Mapping[Register, Use]],
    alone: set[Access],
) -> Row:
    uses = {
        name: _sum(registers[one] for one in members if one in registers)
        for name, registers in used.items()
    }
    kinds = {name: use.kinds for name, use in uses.items()}
    here = {name: _without(kinds, name) for name in kinds}
    ever = {
        name: tuple(kind for kind in here[name] if Access(name, members[0], kind) in alone)
        for name in kinds
    }
    indices = tuple(one.index for one in members if one.index is not None)
    return Row(members[0].name, indices, uses, here, ever)


def _sum(uses: Iterable[Use]) -> Use:
    found = list(uses)
    written = [one.written for one in found if one.written is not None]
    return Use(
        sum(one.reads for one in found),
        sum(one.writes for one in found),
        None if not written else written[0] if len(set(written)) == 1 else "various",
        min((one.first for one in found), default=0),
    )


def ranges(numbers: Sequence[int]) -> str:
    """Numbers in ascending order: 0-3,5. Those of equal distances: 0-60/4."""
    return ",".join(
        str(run.start) if len(run) == 1
        else f"{run[0]}-{run[-1]}" + (f"/{run.step}" if run.step > 1 else "")
        for run in _runs(numbers)
    )  # fmt: skip


def _runs(numbers: Sequence[int]) -> Iterator[range]:
    rest = list(numbers)
    while rest:
        step = rest[1] - rest[0] if len(rest) > 1 else 1
        count = 1
        while count < len(rest) and rest[count] - rest[count - 1] == step:
            count += 1
        if step > 1 and count < 3:
            count = 1
        run = range(rest[0], rest[count - 1] + 1, step)
        yield run if len(run) > 1 else range(rest[0], rest[0] + 1)
        rest = rest[count:]
