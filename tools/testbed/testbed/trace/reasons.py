# SPDX-License-Identifier: GPL-2.0
"""Why an access is made by one driver only: the table in reasons.rst."""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.env import Env
from testbed.host.ui import Failure
from testbed.trace.accesses import READ, WRITE, Access, Trace, lonely, ranges

DOCUMENT = "tools/testbed/testbed/trace/reasons.rst"
_TITLE = "Accesses that only one of the drivers makes"
_DRIVERS = {"``ixgbe``": "c", "``ixgbe_rust``": "rust"}
_KINDS = {"reads": (READ,), "writes": (WRITE,), "uses": (READ, WRITE)}
# Of an array.
EVERY = range(sys.maxsize)
_REGISTERS = re.compile(r"``(\w+)(?:\[(\d+)(?:-(\d+))?\])?``")


@dataclass(frozen=True)
class Pattern:
    """Registers of one name, or those of an array from one place to another."""

    name: str
    places: range

    def covers(self, access: Access) -> bool:
        """Whether the access is to one of them."""
        return access.register.name == self.name and (access.register.index or 0) in self.places


@dataclass(frozen=True)
class Reason:
    """A row of the table."""

    group: str
    driver: str
    kinds: tuple[str, ...]
    patterns: tuple[Pattern, ...]

    def covers(self, access: Access) -> bool:
        """Whether it is the reason for an access."""
        return (
            access.driver == self.driver
            and access.kind in self.kinds
            and any(pattern.covers(access) for pattern in self.patterns)
        )


@dataclass(frozen=True)
class Explained:
    """The accesses that only one driver makes, with their reasons."""

    by_reason: Sequence[tuple[Reason, Sequence[Access]]]
    unexplained: Sequence[Access]

    @property
    def idle(self) -> list[str]:
        """Registers in the table that both drivers use, or none."""
        return [
            f"{reason.group}: {pattern.name}"
            for reason, found in self.by_reason
            for pattern in reason.patterns
            if not any(pattern.covers(access) for access in found)
        ]

    def text(self) -> list[str]:
        """Their numbers by group, then those without a reason."""
        lines = ["Accesses that only one driver makes, by the groups of reasons.rst",
                 "(registers; the same where an array counts once):"]  # fmt: skip
        for reason, found in self.by_reason:
            words = f"{reason.driver} {'/'.join(reason.kinds)}"
            lines.append(f"  {reason.group:<28}{words:<18}{len(found):>6}{len(names(found)):>6}")
        everything = [access for _, found in self.by_reason for access in found]
        lines.append(f"  {'all':<46}{len(everything):>6}{len(names(everything)):>6}")
        if self.unexplained:
            lines += ["", "without an explanation there:"]
            lines += [f"  {name}" for name in names(self.unexplained)]
        return lines


def names(accesses: Iterable[Access]) -> list[str]:
    """Their drivers, kinds and registers, those of an array together."""
    arrays: dict[tuple[str, str, str], list[int]] = {}
    for one in sorted(accesses):
        places = arrays.setdefault((one.driver, one.kind, one.register.name), [])
        if one.register.index is not None:
            places.append(one.register.index)
    return [
        f"{driver} {kind}s {name}" + (f"[{ranges(places)}]" if places else "")
        for (driver, kind, name), places in arrays.items()
    ]


def parse(document: str) -> list[Reason]:
    """The rows of the table in the document."""
    _, found, rest = document.partition(f"\n{_TITLE}\n")
    table = re.search(r"^\.\. list-table::\n(?P<rows>(?:\n|   .*\n)+)", rest, re.M)
    if not found or table is None:
        raise Failure(f"{DOCUMENT} has no table '{_TITLE}'")
    rows = re.split(r"^   \* - ", table["rows"], flags=re.M)[2:]
    return [_reason([" ".join(cell.split()) for cell in re.split(r"^     - ", row, flags=re.M)])
            for row in rows]  # fmt: skip


def _reason(cells: Sequence[str]) -> Reason:
    group, accesses, registers, _ = cells
    driver, kind = accesses.split()
    patterns = (
        Pattern(name, range(int(first), int(last or first) + 1) if first else EVERY)
        for name, first, last in _REGISTERS.findall(registers)
    )
    return Reason(group, _DRIVERS[driver], _KINDS[kind], tuple(patterns))


def explain(env: Env, traces: Sequence[Trace]) -> Explained:
    """Look up each access that only one driver makes."""
    return look_up(parse((env.clone / DOCUMENT).read_text()), lonely(traces))


def look_up(reasons: Sequence[Reason], accesses: Iterable[Access]) -> Explained:
    """Each access, with the first row that covers it."""
    found: dict[Reason | None, list[Access]] = {reason: [] for reason in (*reasons, None)}
    for access in sorted(accesses):
        found[next((one for one in reasons if one.covers(access)), None)].append(access)
    return Explained([(reason, found[reason]) for reason in reasons], found[None])
