# SPDX-License-Identifier: GPL-2.0
"""The judgement of instruction counts: only a quiet machine proves that they have grown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from insn.cost import CASES, JUDGED, Cost
from testbed.bench.instructions import Counted
from testbed.suites.test_compare import compared

_KNOWN: dict[str, Any] = {
    "drivers": {"rust": {**dict.fromkeys(CASES, 100.0), "functions": {}}},
}


def _boots(*found: tuple[float, float]) -> tuple[Callable[[int], Counted], list[int]]:
    """Boots that count so many instructions in all, and wait for such a share of the time."""
    made: list[int] = []

    def count(boot: int) -> Counted:
        made.append(boot)
        instructions, waited = found[boot - 1]
        cost = Cost({**dict.fromkeys(CASES, 100.0), "all": instructions})
        return Counted({"rust": cost}, [], waited)

    return count, made


@pytest.mark.parametrize(
    ("boots", "number", "failed", "skipped"),
    [
        ([(100.9, 0.0)], 1, False, False),
        ([(100.9, 0.5)], 1, False, False),
        ([(102.0, 0.0), (100.0, 0.5)], 2, False, False),
        ([(102.0, 0.0)] * 3, 3, True, False),
        ([(102.0, 0.5), (102.0, 0.0), (103.0, 0.0), (102.0, 0.01)], 4, True, False),
        ([(102.0, 0.5)] * 5, 5, True, True),
        ([(102.0, 0.0)] * 2 + [(102.0, 0.2)] * 3, 5, True, True),
    ],
)
def test_a_growth_is_proven_or_nothing_is_said(
    boots: list[tuple[float, float]], number: int, failed: bool, skipped: bool
) -> None:
    count, made = _boots(*boots)
    found = compared(count, _KNOWN)
    assert len(made) == number
    assert set(found) == set(JUDGED)
    wrong, why = found["all"]
    assert (wrong is not None, bool(why)) == (failed, skipped)
    assert found["driver"] == (None, "")
