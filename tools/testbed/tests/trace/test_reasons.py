# SPDX-License-Identifier: GPL-2.0
"""The table of reasons."""

from __future__ import annotations

from testbed.trace.accesses import Access
from testbed.trace.reasons import _REGISTER, TABLE, explain

ROWS = [
    {
        "group": "DCB",
        "driver": "c",
        "kinds": ["write"],
        "registers": "RTTDT1 TXPBTHRESH[1-7]\nX[2]",
    },
    {"group": "Reset", "driver": "rust", "kinds": ["read", "write"], "registers": "EEC"},
]


def access(driver: str, kind: str, name: str, index: int | None = None) -> Access:
    """An access to a register."""
    return Access(driver, kind, 0x1000 + 4 * (index or 0), name, index)


def test_a_reason_is_of_a_driver_a_kind_and_a_place() -> None:
    known = [
        access("c", "write", "RTTDT1", 1),
        access("c", "write", "TXPBTHRESH", 7),
        access("c", "write", "X", 2),
        access("rust", "read", "EEC"),
    ]
    others = [
        access("c", "read", "RTTDT1", 1),
        access("rust", "write", "RTTDT1", 1),
        access("c", "write", "TXPBTHRESH", 0),
        access("c", "write", "TXPBTHRESH", 8),
        access("c", "write", "X", 3),
        access("c", "write", "RTTDT"),
    ]
    unexplained, idle = explain([*known, *others], ROWS)
    assert unexplained == sorted(others)
    assert idle == []
    assert explain(known[1:], ROWS)[1] == ["DCB: RTTDT1"]


def test_the_reasons_are_complete() -> None:
    for reason in TABLE:
        assert {*reason["kinds"]} <= {"read", "write"}
        assert reason["driver"] in ("c", "rust")
        assert reason["group"] and reason["why"].strip()
        registers = reason["registers"].split()
        assert registers and all(map(_REGISTER.fullmatch, registers)), reason["group"]
