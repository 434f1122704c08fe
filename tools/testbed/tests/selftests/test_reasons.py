# SPDX-License-Identifier: GPL-2.0
"""Each case of the kernel's selftests that does not pass has a reason in the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testbed.selftests import reasons

RECORD = Path(__file__).parents[2] / "record/results/selftests.json"


def _results(result: str, reason: str = "", name: str = "test_a") -> dict[str, Any]:
    return {"ntuple.py": {"cases": {name: {"result": result, "reason": reason}}}}


def test_a_case_that_passes_needs_no_reason() -> None:
    """Nothing is listed for it."""
    assert reasons.explained(_results("pass")) == {}


def test_the_first_rule_that_fits_counts() -> None:
    """By the name of the case, or its own reason; another case is not explained."""
    found = reasons.explained(_results("fail", name="queue.tcp6.src_ip"))
    assert list(found) == [("ntuple.py", reasons.CARD, "no perfect filters for IPv6")]
    found = reasons.explained(_results("skip", "the action of 6. is unknown"))
    assert list(found) == [("ntuple.py", reasons.CARD, "no perfect filters for IPv6")]
    found = reasons.explained(_results("fail", name="queue.tcp4.src_ip"))
    assert list(found) == [("ntuple.py", reasons.UNKNOWN, "queue.tcp4.src_ip")]


def test_unexplained_cases_are_told_in_the_table() -> None:
    """They are not hidden among the others."""
    lines = reasons.table(_results("fail", name="queue.tcp4.src_ip"))
    assert f"| {reasons.UNKNOWN} | 1 |" in lines


def test_rules_have_known_causes() -> None:
    """A cause is one of four."""
    assert {rule.cause for rule in reasons.RULES} == set(reasons.CAUSES)


def test_the_record_is_explained() -> None:
    """No case of the record is without a reason."""
    results = json.loads(RECORD.read_text())["rust"]
    unknown = [key for key in reasons.explained(results) if key[1] == reasons.UNKNOWN]
    assert unknown == []
