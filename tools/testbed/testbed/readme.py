# SPDX-License-Identifier: GPL-2.0
"""The figures in the README: make bench RECORD=1 writes them there, all of them.

A part of the README lies between two comments, as in

    <!-- figures of make bench: forward -->
    <!-- end of figures -->

and is replaced as a whole, so that no figure is chosen by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from testbed.ui import Failure

_PART = re.compile(
    r"^<!-- figures of make bench: (\w+) -->\n.*?^<!-- end of figures -->\n", re.M | re.S
)
# What of make bench belongs to which part.
PARTS: Mapping[str, frozenset[str]] = {
    "memory": frozenset({"slab", "alf_queue", "qmempool", "skb"}),
    "forward": frozenset({"forward"}),
    "insn": frozenset({"insn"}),
    "xmit": frozenset({"xmit"}),
}


@dataclass(frozen=True)
class Circumstances:
    """What a reader must know of a measurement."""

    day: date
    cpu: str
    processors: int
    kernel: str
    rounds: int

    def sentence(self) -> str:
        """All of it, for a person."""
        return (
            f"{self.day.isoformat()}, {self.processors} processors of {self.cpu}, "
            f"Linux {self.kernel}, {self.rounds} rounds:"
        )


def refusals(names: Iterable[str], cases: str, quiet: bool) -> dict[str, str]:
    """The parts of which something was measured, and why not to write one, or nothing."""
    measured = set(names)
    found: dict[str, str] = {}
    for part, benches in PARTS.items():
        missing = sorted(benches - measured)
        if not benches & measured:
            continue
        why = ""
        if missing:
            why = f"it needs {', '.join(missing)} as well"
        elif part == "forward" and cases:
            why = f"CASES={cases} leaves some out"
        elif part != "insn" and not quiet:
            why = "the machine was busy"
        found[part] = why
    return found


def part(lines: Sequence[str], circumstances: Circumstances) -> str:
    """A part, from the lines of tables."""
    body = "\n".join(f"    {line}".rstrip() for line in lines).strip("\n")
    return f"{circumstances.sentence()}\n\n{body}\n"


def replace(text: str, parts: Mapping[str, str]) -> str:
    """The README with these parts renewed."""
    known = [found[1] for found in _PART.finditer(text)]
    for name in parts:
        if known.count(name) != 1:
            raise Failure(
                f"README.md has {known.count(name)} places for the figures of {name}",
                f"one is needed: <!-- figures of make bench: {name} -->, "
                "and <!-- end of figures --> behind it, each on a line of its own",
            )

    def renewed(found: re.Match[str]) -> str:
        if found[1] not in parts:
            return found[0]
        first, last = found[0].splitlines()[0], found[0].splitlines()[-1]
        return f"{first}\n{parts[found[1]]}{last}\n"

    return _PART.sub(renewed, text)


def renew(path: Path, parts: Mapping[str, str]) -> None:
    """Write these parts to the README."""
    path.write_text(replace(path.read_text(), parts))
