# SPDX-License-Identifier: GPL-2.0
"""Traces of two drivers: what they share, what only one of them does, how rows are folded."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.host.ui import Failure
from testbed.trace import accesses, table
from testbed.trace.accesses import Access, Register, Trace, lonely, ranges, rows


def entry(name: str, offset: int, index: int | None = None, **more: Any) -> dict[str, Any]:
    """A register of the model's answer."""
    used = {"reads": 0, "writes": 0, "read": None, "written": None, "first": 0, **more}
    return {"name": name, "offset": hex(offset), "index": index, **used}


def trace(driver: str, **phases: list[dict[str, Any]]) -> Trace:
    """A trace of these phases."""
    answer = {
        "complete": True,
        "phases": [{"name": name, "registers": found} for name, found in phases.items()],
    }
    return accesses.read(driver, answer)


CTRL = entry("CTRL", 0x0, reads=3, writes=1, written="0x00000004")
MTA = [entry("MTA", 0x5200 + 4 * i, i, writes=1, written="0x00000000") for i in range(128)]
POLLED = entry("EEC", 0x10010, reads=100_000)


def test_a_trace_that_lacks_accesses_is_refused() -> None:
    with pytest.raises(Failure, match="lacks accesses"):
        accesses.read("c", {"complete": False, "phases": []})


def test_an_access_that_the_other_makes_in_another_phase_is_not_lonely() -> None:
    traces = [trace("c", probe=[CTRL, POLLED], open=[]), trace("rust", probe=[], open=[CTRL])]
    assert lonely(traces) == {Access("c", Register(0x10010, "EEC"), "read")}
    first, second = rows(traces, "probe")
    assert (first.here["c"], first.ever["c"]) == (("read", "write"), ())
    assert (second.here["c"], second.ever["c"]) == (("read",), ("read",))


def test_reads_and_writes_are_told_apart() -> None:
    reader = entry("CTRL", 0x0, reads=1)
    alone = lonely([trace("c", probe=[CTRL]), trace("rust", probe=[reader])])
    assert alone == {Access("c", Register(0x0, "CTRL"), "write")}


def test_an_array_is_folded_by_its_use() -> None:
    some = [MTA[0], *MTA[3:6]]
    found = rows([trace("c", open=MTA), trace("rust", open=some)], "open")
    assert [row.label for row in found] == ["MTA[0,3-5]", "MTA[1-2,6-127]"]
    shared, alone = found
    assert (shared.uses["c"].writes, shared.uses["rust"].writes) == (4, 4)
    assert shared.here == {"c": (), "rust": ()}
    assert (alone.uses["c"].writes, alone.ever) == (124, {"c": ("write",), "rust": ()})


def test_values_of_an_array_that_differ_are_various() -> None:
    other = entry("MTA", 0x5204, 1, writes=1, written="0x00000001")
    (row,) = rows([trace("c", open=[MTA[0], other])] * 2, "open")
    assert row.uses["c"].written == "various"
    (row,) = rows([trace("c", open=MTA)] * 2, "open")
    assert row.uses["c"].written == "0x00000000"


def test_polls_are_one_line() -> None:
    traces = [trace("c", probe=[POLLED]), trace("rust", probe=[POLLED])]
    lines = table.text(traces)
    (line,) = [line for line in lines if line.startswith("  EEC ")]
    assert line.split() == ["EEC", "100000", "-", "100000", "-"]
    assert "probe: c 100000, rust 100000 accesses" in lines


def test_marks_tell_the_phase_from_the_whole() -> None:
    reader = entry("CTRL", 0x0, reads=1)
    traces = [trace("c", probe=[CTRL, POLLED]), trace("rust", probe=[reader], open=[POLLED])]
    lines = {line.split()[0]: line for line in table.text(traces) if line.startswith("  ")}
    assert lines["CTRL"].endswith("c w")
    assert lines["EEC"].endswith("rust (r)")
    assert table.phases(traces) == ["probe", "open"]


def test_the_record_has_every_register_and_what_is_lonely() -> None:
    record = table.record([trace("c", probe=[*MTA, POLLED]), trace("rust", probe=MTA)])
    assert record["drivers"] == ["c", "rust"]
    (phase,) = record["phases"]
    assert len(phase["registers"]) == 129
    assert phase["registers"][-1]["c"]["reads"] == 100_000
    assert "rust" not in phase["registers"][-1]
    (only,) = record["only"]
    assert (only["driver"], only["kind"], only["name"]) == ("c", "read", "EEC")


def test_ranges() -> None:
    assert ranges([]) == ""
    assert ranges([3]) == "3"
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert ranges([10, 26, 42, 58]) == "10-58/16"
    assert ranges([0, 2, 5]) == "0,2,5"
    assert ranges([0, 2, 3, 4]) == "0,2-4"
