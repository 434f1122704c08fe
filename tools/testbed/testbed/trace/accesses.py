# SPDX-License-Identifier: GPL-2.0
"""Register accesses by phase, as the NIC model has counted them, of two drivers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from testbed.host.ui import Failure


class Access(NamedTuple):
    """Reads or writes of a register, or of one of an array, by a driver, however many."""

    driver: str
    kind: str
    offset: int
    name: str
    place: int | None


# All accesses of a driver, by phase.
Trace = Mapping[str, set[Access]]


def read(driver: str, answer: Mapping[str, Any]) -> Trace:
    """The model's answer to `accesses`."""
    if not answer["complete"]:
        raise Failure(f"{driver}: the trace lacks accesses to pages that the guest has mapped")
    return {
        phase["name"]: {
            Access(driver, kind, int(one["offset"], 16), one["name"], one["index"])
            for one in phase["registers"]
            for kind in ("read", "write")
            if one[f"{kind}s"]
        }
        for phase in answer["phases"]
    }


def lonely(accesses: Iterable[set[Access]]) -> set[Access]:
    """The accesses of one of two drivers that the other does not make."""
    found = set[Access]().union(*accesses)
    makers = Counter(one[1:] for one in found)
    return {one for one in found if makers[one[1:]] == 1}


def names(accesses: Iterable[Access]) -> list[str]:
    """Their drivers, kinds and registers, those of an array together."""
    arrays: dict[tuple[str, str, str], list[int]] = {}
    for one in sorted(accesses):
        places = arrays.setdefault((one.driver, one.kind, one.name), [])
        places += [] if one.place is None else [one.place]
    return [f"{driver} {kind}s {name}" + (f"[{_ranges(places)}]" if places else "")
            for (driver, kind, name), places in arrays.items()]  # fmt: skip


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in ascending order: 0-3,5."""
    found = []
    for _, group in groupby(enumerate(numbers), lambda one: one[1] - one[0]):
        (_, first), *rest = group
        found.append(f"{first}-{rest[-1][1]}" if rest else str(first))
    return ",".join(found)
