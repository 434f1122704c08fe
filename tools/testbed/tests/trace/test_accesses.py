# SPDX-License-Identifier: GPL-2.0
"""Traces of two drivers: what they share, and what only one of them does."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.host.ui import Failure
from testbed.trace import accesses
from testbed.trace.accesses import Access, Trace, lonely, names


def entry(name: str, offset: int, index: int | None = None, **more: Any) -> dict[str, Any]:
    """A register of the model's answer."""
    return {"name": name, "offset": hex(offset), "index": index, "reads": 0, "writes": 0, **more}


def trace(driver: str, **phases: list[dict[str, Any]]) -> Trace:
    """A trace of these phases."""
    answer = {
        "complete": True,
        "phases": [{"name": name, "registers": found} for name, found in phases.items()],
    }
    return accesses.read(driver, answer)


def alone(*traces: Trace) -> set[Access]:
    """Accesses that only one makes, whatever the phase."""
    return lonely(part for one in traces for part in one.values())


CTRL = entry("CTRL", 0x0, reads=3, writes=1)
MTA = [entry("MTA", 0x5200 + 4 * i, i, writes=1) for i in range(128)]
POLLED = entry("EEC", 0x10010, reads=100_000)


def test_a_trace_that_lacks_accesses_is_refused() -> None:
    with pytest.raises(Failure, match="lacks accesses"):
        accesses.read("c", {"complete": False, "phases": []})


def test_an_access_that_the_other_makes_in_another_phase_is_not_lonely() -> None:
    traces = [trace("c", probe=[CTRL, POLLED], open=[]), trace("rust", probe=[], open=[CTRL])]
    assert alone(*traces) == {Access("c", "read", 0x10010, "EEC", None)}


def test_reads_and_writes_are_told_apart() -> None:
    reader = entry("CTRL", 0x0, reads=1)
    found = alone(trace("c", probe=[CTRL]), trace("rust", probe=[reader]))
    assert found == {Access("c", "write", 0x0, "CTRL", None)}


def test_registers_of_an_array_are_named_together() -> None:
    found = alone(trace("c", open=MTA), trace("rust", open=[MTA[0], *MTA[3:6]]))
    assert names(found) == ["c writes MTA[1-2,6-127]"]
    assert names([*found][:0]) == []
