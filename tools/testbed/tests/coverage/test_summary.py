# SPDX-License-Identifier: GPL-2.0
"""The record of a run, and its tables."""

from __future__ import annotations

from pathlib import Path

from testbed.coverage import recorder, summary
from testbed.coverage.functions import Function
from testbed.selftests.kinds import COVERED, in_tier

CLONE = Path(__file__).parents[4]
DRIVER = f"{summary.DRIVER}/"
PROBE, STOP = Function(f"{DRIVER}port.rs", 1, "probe"), Function(f"{DRIVER}port.rs", 9, "stop")
CAGE = Function(f"{DRIVER}port/cage.rs", 2, "cage")
SLAB = Function("rust/kernel/slab.rs", 3, "alloc")
MODEL = Function("tools/nicmodel/device/src/judge/rules.rs", 4, "rule")
EVERY = {PROBE, STOP, CAGE, SLAB, MODEL}
RUNS = {
    recorder.BOOT: {PROBE},
    "e2e-uml/forward": {PROBE, MODEL},
    "e2e-uml/xmit_llist_selftests": {PROBE, SLAB, MODEL},
}
TIER = {recorder.BOOT, "e2e-uml/forward"}


def test_a_folder_has_its_own_row_and_its_head() -> None:
    rows = summary.content(EVERY, RUNS, TIER)["parts"]
    assert rows["driver"] == {f"{DRIVER}port": [1, 3]}
    assert rows["abstractions"] == {"rust/kernel": [0, 1]}
    assert rows["model"] == {"tools/nicmodel/device/judge": [1, 1]}


def test_a_program_alone_enters_what_no_other_of_the_tier_does() -> None:
    programs = summary.content(EVERY, RUNS, TIER)["programs"]
    assert programs["e2e-uml/forward"] == {
        "tier": True, "entered": 2, "alone": 1, "files": [MODEL.file],
    }  # fmt: skip
    assert programs["e2e-uml/xmit_llist_selftests"] == {
        "tier": False, "entered": 3, "alone": 1, "files": [SLAB.file],
    }  # fmt: skip


def test_the_rest_is_named() -> None:
    content = summary.content(EVERY, RUNS, TIER)
    assert content["files"] == [CAGE.file, SLAB.file]
    assert content["driver"] == {PROBE.file: ["stop"], CAGE.file: ["cage"]}


def test_programs_of_the_tier_that_have_not_run_are_missing() -> None:
    wanted = in_tier(CLONE, COVERED)
    assert "e2e-uml/forward" in wanted and "e2e-uml/xmit_llist_selftests" not in wanted
    lacking = summary.missing(CLONE, summary.content(EVERY, RUNS, TIER))
    assert lacking == sorted({*wanted} - {"e2e-uml/forward"})


def test_tables_show_sums_and_the_reason_for_each_program() -> None:
    lines = summary.lines(summary.content(EVERY, RUNS, TIER))
    for line in (
        "| **driver** | **3** | **1** |",
        f"| `{DRIVER}port` | 3 | 1 |",
        "| e2e-uml/forward | 2 | 1 | rules.rs |",
        "| e2e-uml/xmit_llist_selftests (`ALL=1`) | 3 | 1 | slab.rs |",
        "- `port.rs`: `stop`",
    ):
        assert line in lines
