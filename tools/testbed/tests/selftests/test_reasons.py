# SPDX-License-Identifier: GPL-2.0
"""Each case of the kernel's selftests that does not pass has a reason in the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testbed.selftests import reasons, record

RECORD = Path(__file__).parents[2] / "record/results/selftests.json"


def _record(
    result: str, reason: str = "", name: str = "test_a", *, program: str = "ntuple.py"
) -> dict[str, Any]:
    """A case with the Rust driver; it passes with the C driver."""

    def of(result: str, reason: str) -> dict[str, Any]:
        counts = {"pass": 0, "fail": 0, "skip": 0, result: 1}
        return {program: {**counts, "cases": {name: {"result": result, "reason": reason}}}}

    return {"rust": of(result, reason), "c": of("pass", "")}


def _with_c(record: dict[str, Any], reason: str) -> dict[str, Any]:
    """The same, and a failure with the C driver."""
    theirs = _record("fail", reason, program="xdp.py")["rust"]
    return {"rust": record["rust"], "c": theirs}


def test_a_case_that_passes_needs_no_reason() -> None:
    """Nothing is listed for it."""
    assert reasons.explained(_record("pass")) == {}


def test_the_first_rule_that_fits_counts() -> None:
    """By the name of the case, or its own reason; another case is not explained."""
    found = reasons.explained(_record("fail", name="queue.tcp6.src_ip"))
    assert list(found) == [("ntuple.py", reasons.CARD, "no perfect filters for IPv6")]
    found = reasons.explained(_record("skip", "the action of 6. is unknown"))
    assert list(found) == [("ntuple.py", reasons.CARD, "no perfect filters for IPv6")]
    found = reasons.explained(_record("fail", name="queue.tcp4.src_ip"))
    assert list(found) == [("ntuple.py", reasons.UNKNOWN, "queue.tcp4.src_ip")]


def test_unexplained_cases_are_told_in_the_table() -> None:
    """They are not hidden among the others."""
    unknown = _record("fail", name="queue.tcp4.src_ip")
    assert reasons.sums(unknown) == f"{reasons.UNKNOWN} (1)"


def test_the_same_words_with_both_drivers_are_no_fault_of_one() -> None:
    """They are a class of their own; other words, or a pass, with the C driver are not."""
    ours = _record("fail", "load failed (-22)", program="xdp.py")
    alike = _with_c(ours, "load failed (-22)")
    assert [cause for _, cause, _ in reasons.explained(alike)] == [reasons.BOTH]
    for other in (ours, _with_c(ours, "load failed (-12)"), {**ours, "c": {}}):
        assert [cause for _, cause, _ in reasons.explained(other)] == [reasons.DRIVER]


def test_a_cause_that_is_known_stays() -> None:
    """A lack of the card or the kernel is called so, alike with both drivers or not."""
    words = "BPF program load failed: unknown error (-524)"
    alike = _with_c(_record("fail", words, program="xdp.py"), words)
    assert [cause for _, cause, _ in reasons.explained(alike)] == [reasons.TESTBED]


def test_the_share_leaves_out_what_is_alike() -> None:
    """It counts the cases that can tell one driver from the other."""
    ours = _record("fail", "no", program="xdp.py")
    assert "Of the others, 1 of 1 pass with the C driver and 0 of 1 pass" in record.share(ours)
    assert "1 cases pass with neither" in record.share(_with_c(ours, "no"))
    assert "0 of 0 pass with the C driver" in record.share(_with_c(ours, "no"))


def test_rules_have_known_causes() -> None:
    """A rule names any but the one that is found by comparison."""
    assert {rule.cause for rule in reasons.RULES} == set(reasons.CAUSES) - {reasons.BOTH}


def test_the_record_is_explained() -> None:
    """No case of the record is without a reason."""
    found = reasons.explained(json.loads(RECORD.read_text()))
    assert [key for key in found if key[1] == reasons.UNKNOWN] == []
