# SPDX-License-Identifier: GPL-2.0
"""Rounds measured by a guest, design by design: the guest's lines."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from testbed.host.ui import Failure

T = TypeVar("T")
# Senders, and the designs that are measured with them.
Cell = Mapping[str, Any]
# Seconds of sending: before packets count, and while they do.
Seconds = Mapping[str, float]
LONG: Seconds = {"warm": 0.1, "window": 0.4}
# Enough for a test.
SHORT: Seconds = {"warm": 0.02, "window": 0.05}


@dataclass
class Found:
    """The results of a design in a case: nanoseconds from one packet to the next, by round."""

    case: str
    design: str
    ns: dict[int, float] = field(default_factory=dict)


def parse(lines: Iterable[str]) -> list[Found]:
    """The results, in the order of their first lines."""
    found: dict[tuple[str, str], Found] = {}
    for line in lines:
        record = json.loads(line)
        key = (record["case"], record["design"])
        found.setdefault(key, Found(*key)).ns[record["round"]] = record["ns"]
    return list(found.values())


def complete(found: Sequence[Found], cells: Sequence[Cell], rounds: int) -> None:
    """Raise an error unless every design of every cell was measured in every round."""
    counts = {(one.case, one.design): len(one.ns) for one in found}
    for cell in cells:
        for design in cell["designs"]:
            count = counts.get((cell["case"], design["name"]), 0)
            if count != rounds:
                raise Failure(
                    f"{cell['case']}, {design['name']}: {count} of {rounds} rounds were measured"
                )


def paired(
    known: Mapping[tuple[str, str], T], ours: str, reference: str
) -> Iterator[tuple[str, T, T]]:
    """Each case of which both designs were measured."""
    for case in dict.fromkeys(case for case, _ in known):
        both = [known.get((case, one)) for one in (ours, reference)]
        if both[0] is not None and both[1] is not None:
            yield case, both[0], both[1]
