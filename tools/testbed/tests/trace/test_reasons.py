# SPDX-License-Identifier: GPL-2.0
"""The table of reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.host.ui import Failure
from testbed.trace import reasons
from testbed.trace.accesses import Access, Register

CLONE = Path(__file__).resolve().parents[4]
DOCUMENT = """
Accesses that only one of the drivers makes
===========================================

Some text.

.. list-table::
   :header-rows: 1

   * - Group
     - Accesses
     - Registers
     - Reason
   * - DCB
     - ``ixgbe`` writes
     - ``RTTDT1``,
       ``TXPBTHRESH[1-7]``
     - There is one traffic class.
   * - Reset
     - ``ixgbe_rust`` uses
     - ``EEC``
     - It waits.

Another section
===============
"""


def access(driver: str, kind: str, name: str, index: int | None = None) -> Access:
    """An access to a register."""
    return Access(driver, Register(0x1000 + 4 * (index or 0), name, index), kind)


def test_rows_are_read() -> None:
    dcb, reset = reasons.parse(DOCUMENT)
    assert (dcb.group, dcb.driver, dcb.kinds) == ("DCB", "c", ("write",))
    assert [(one.name, one.places) for one in dcb.patterns] == [
        ("RTTDT1", reasons.EVERY),
        ("TXPBTHRESH", range(1, 8)),
    ]
    assert (reset.group, reset.driver, reset.kinds) == ("Reset", "rust", ("read", "write"))


def test_a_document_without_the_table_is_refused() -> None:
    with pytest.raises(Failure, match="has no table"):
        reasons.parse("A title\n=======\n")


def test_a_reason_is_of_a_driver_a_kind_and_a_place() -> None:
    rows = reasons.parse(DOCUMENT)
    known = [
        access("c", "write", "RTTDT1", 1),
        access("c", "write", "TXPBTHRESH", 7),
        access("rust", "read", "EEC"),
    ]
    others = [
        access("c", "read", "RTTDT1", 1),
        access("rust", "write", "RTTDT1", 1),
        access("c", "write", "TXPBTHRESH", 0),
        access("c", "write", "TXPBTHRESH", 8),
        access("c", "write", "RTTDT"),
    ]
    found = reasons.look_up(rows, [*known, *others])
    assert sorted(found.unexplained) == sorted(others)
    assert [len(accesses) for _, accesses in found.by_reason] == [2, 1]
    assert found.idle == []
    assert reasons.look_up(rows, known[1:]).idle == ["DCB: RTTDT1"]


def test_numbers_are_of_registers_and_of_arrays() -> None:
    found = reasons.look_up(
        reasons.parse(DOCUMENT),
        [access("c", "write", "TXPBTHRESH", place) for place in (1, 2, 3)]
        + [access("c", "write", "PFVTCTL")],
    )
    lines = [" ".join(line.split()) for line in found.text()]
    assert "DCB c write 3 1" in lines
    assert "Reset rust read/write 0 0" in lines
    assert "all 3 1" in lines
    assert lines[-1] == "c writes PFVTCTL"


def test_registers_of_an_array_are_named_together() -> None:
    found = [access("c", "write", "RETA", place) for place in (0, 1, 2, 9)]
    assert reasons.names(found) == ["c writes RETA[0-2,9]"]


def test_the_documentation_has_the_table() -> None:
    for reason in reasons.parse((CLONE / reasons.DOCUMENT).read_text()):
        assert reason.patterns, reason.group
