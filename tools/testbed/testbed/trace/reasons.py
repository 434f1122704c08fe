# SPDX-License-Identifier: GPL-2.0
"""Why an access is made by one driver only: reasons.toml."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.trace.accesses import Access

TABLE: Sequence[Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)["reason"]
# A register, or all of an array, or those from one place to another.
_REGISTER = re.compile(r"(\w+)(?:\[(\d+)(?:-(\d+))?\])?")


def _covers(reason: Mapping[str, Any], register: str, access: Access) -> bool:
    found = _REGISTER.fullmatch(register)
    if found is None or (access.driver, access.name) != (reason["driver"], found[1]):
        return False
    first = int(found[2] or 0)
    there = found[2] is None or first <= (access.place or 0) <= int(found[3] or first)
    return there and access.kind in reason["kinds"]


def explain(
    alone: Iterable[Access], table: Sequence[Mapping[str, Any]] = TABLE
) -> tuple[list[Access], list[str]]:
    """The accesses of one driver only that have no reason, and the reasons without an access."""
    left = set(alone)
    every, idle = frozenset(left), []
    for reason in table:
        for register in reason["registers"].split():
            found = {one for one in every if _covers(reason, register, one)}
            left -= found
            if not found:
                idle.append(f"{reason['group']}: {register}")
    return sorted(left), idle
