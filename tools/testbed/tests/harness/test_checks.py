# SPDX-License-Identifier: GPL-2.0
"""The list of all checks, and what a run lacks of it."""

from __future__ import annotations

from pathlib import Path

from testbed.catalogue import SUITES
from testbed.harness import checks
from testbed.harness.checks import Checks, lacking
from testbed.selftests.kinds import KINDS, programs_of

_CLONE = Path(__file__).resolve().parents[4]
_KNOWN: Checks = {
    "e2e-uml/vlan.py": {"insert": "passed", "strip": "passed", "no_card": "skipped"},
    "kunit/test_kunit": {"a.b": "passed"},
}


def _all_but(item: str, *names: str, **outcomes: checks.Outcome) -> Checks:
    left = {name: one for name, one in _KNOWN[item].items() if name not in names}
    return {item: {**left, **outcomes}}


def test_a_run_of_all_lacks_nothing() -> None:
    assert lacking(_KNOWN, _KNOWN, ()) == {}


def test_only_items_that_ran_can_lack_checks() -> None:
    assert lacking(_KNOWN, _all_but("kunit/test_kunit"), ()) == {}


def test_a_check_that_is_no_longer_reported_is_missed() -> None:
    seen = _all_but("e2e-uml/vlan.py", "strip")
    assert lacking(_KNOWN, seen, ()) == {"e2e-uml/vlan.py": "not reported: strip"}


def test_a_program_that_skips_itself_is_missed() -> None:
    seen: Checks = {"e2e-uml/vlan.py": {"vlan.py": "skipped"}}
    words = lacking(_KNOWN, seen, ())["e2e-uml/vlan.py"]
    assert words == "not reported: insert, no_card, strip"


def test_a_check_that_is_skipped_now_is_missed() -> None:
    seen = _all_but("e2e-uml/vlan.py", insert="skipped")
    assert lacking(_KNOWN, seen, ()) == {"e2e-uml/vlan.py": "skipped now: insert"}


def test_a_machine_may_be_the_reason() -> None:
    assert lacking(_KNOWN, _all_but("e2e-uml/vlan.py", insert="excused"), ()) == {}
    assert checks.MACHINES.match("ruff is not installed")
    assert not checks.MACHINES.match("the driver has no such ring")


def test_an_item_without_time_lacks_nothing() -> None:
    seen = _all_but("e2e-uml/vlan.py", "strip")
    assert lacking(_KNOWN, seen, ["e2e-uml/vlan.py"]) == {}


def test_long_lists_are_cut() -> None:
    known: Checks = {"python/a.py": {f"test_{number}": "passed" for number in range(8)}}
    assert lacking(known, {"python/a.py": {}}, ())["python/a.py"].endswith("test_4 and 3 more")


def test_a_run_updates_the_items_that_passed(tmp_path: Path) -> None:
    (tmp_path / checks.FOLDER).parent.mkdir(parents=True)
    checks.save(tmp_path, _KNOWN)
    assert checks.load(tmp_path) == _KNOWN
    checks.save(tmp_path, {"kunit/test_kunit": {"a.c": "passed"}})
    assert checks.load(tmp_path)["kunit/test_kunit"] == {"a.c": "passed"}
    checks.save(tmp_path, {"kunit/test_kunit": {"a.d": "passed", "a.c": "failed"}})
    assert checks.load(tmp_path) == {**_KNOWN, "kunit/test_kunit": {"a.c": "passed"}}


def test_checks_that_are_new_are_counted() -> None:
    seen = _all_but("e2e-uml/vlan.py", more="passed", most="skipped")
    assert checks.unknown(_KNOWN, seen) == 2


def test_each_item_of_the_record_exists() -> None:
    for item in checks.load(_CLONE):
        suite, _, name = item.partition("/")
        assert suite in SUITES
        if suite == "python":
            assert (_CLONE / "tools" / name).is_file(), item
        if suite in (kind.suite for kind in KINDS):
            assert name in programs_of(_CLONE, suite), item
