# SPDX-License-Identifier: GPL-2.0
"""Each case of the kernel's selftests that does not pass has a reason in the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testbed.selftests import record

RECORD = Path(__file__).parents[2] / "record/results/selftests.json"


def rows(
    result: str, reason: str = "", name: str = "test_a", program: str = "ntuple.py", **c: Any
) -> list[str]:
    """The reasons of a case with the Rust driver."""
    ours = {program: {"cases": {name: {"result": result, "reason": reason}}}}
    return record.reasons({"rust": ours, "c": c})[2:]


def test_a_case_that_passes_needs_no_reason() -> None:
    """Nothing is listed for it."""
    assert rows("pass") == []


def test_the_first_rule_that_fits_counts() -> None:
    """By the name of the case, or its own reason; another case is not explained."""
    wanted = ["| ntuple.py | 1 | card | no perfect filters for IPv6 |"]
    assert rows("fail", name="queue.tcp6.src_ip") == wanted
    assert rows("skip", "the action of 6. is unknown") == wanted
    unknown = [f"| ntuple.py | 1 | {record.UNKNOWN} | queue.tcp4.src_ip |"]
    assert rows("fail", name="queue.tcp4.src_ip") == unknown


def test_a_rule_may_be_about_several_programs() -> None:
    """By a pattern."""
    wanted = "| xskxceiver-drv-b.sh | 1 | testbed | User-Mode Linux has no huge pages |"
    found = rows("skip", "No huge pages present.", program="xskxceiver-drv-b.sh")
    assert found == [wanted]


def test_the_same_words_with_both_drivers_are_no_fault_of_one() -> None:
    """Other words, or none, with the C driver are."""
    ours = ("fail", "load failed (-22)", "test_a", "ipsec_vxlan.py")
    for reason, cause in (("load failed (-22)", "| both |"), ("load failed (-12)", "| driver |")):
        theirs = {"ipsec_vxlan.py": {"cases": {"test_a": {"result": "fail", "reason": reason}}}}
        assert cause in rows(*ours, **theirs)[0]
    assert "| driver |" in rows(*ours)[0]


def test_rules_have_known_causes() -> None:
    """Those in the head of their file."""
    assert {cause for _, cause, *_ in record._RULES} == {"card", "driver", "testbed", "test"}


def test_the_record_is_explained() -> None:
    """No case of the record is without a reason."""
    assert record.UNKNOWN not in "\n".join(record.reasons(json.loads(RECORD.read_text())))
