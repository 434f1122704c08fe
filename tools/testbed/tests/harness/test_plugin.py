# SPDX-License-Identifier: GPL-2.0
"""make test's pytest plugin, with suites of a few results each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.harness import lanes
from testbed.settings import INTERNAL, VARIABLES

_TESTS = """
import os
import pytest
from testbed.host.ui import Failure, OutOfTime, say

@pytest.mark.suite("kunit")
def test_many(results):
    say(f"kunit in {os.getpid()}")
    results.add("a")
    results.add("same")
    results.add("same", "broken")
    results.skip("c", "no such thing")

@pytest.mark.suite("kernel-lint")
def test_second():
    say(f"kernel-lint in {os.getpid()}")

@pytest.mark.suite("e2e-uml")
@pytest.mark.parametrize("program", ["forward.py", pytest.param("vlan.py",
                                                                 marks=pytest.mark.beyond)])
def test_program(results, program):
    say(f"{program} in {os.getpid()}")
    results.add("case")

@pytest.mark.suite("objects")
def test_cannot(results):
    say(f"objects in {os.getpid()}")
    raise Failure("it is not there", "get it")

@pytest.mark.suite("up")
def test_late():
    raise OutOfTime

@pytest.mark.suite("kcsan")
def test_on_request(results):
    results.add("asked for")

@pytest.mark.suite("selftests")
def test_chooses(results):
    results.add(os.environ["ONLY"])

@pytest.mark.suite("compile-fail")
def test_first():
    say(f"compile-fail in {os.getpid()}")

def test_unit():
    assert True
"""
_BESIDE = """
import os
import time
from pathlib import Path
import pytest

@pytest.mark.suite("e2e-uml")
@pytest.mark.parametrize("program", ["a.py", "b.py", "c.py"])
def test_program(program):
    Path(program).touch()
    time.sleep(0.1 if program == "a.py" else 1)
    Path(program).unlink()

@pytest.mark.suite("compare")
@pytest.mark.parametrize("number", range(5))
def test_measures(number):
    assert not list(Path().glob("?.py"))
    time.sleep(0.1)
    assert not list(Path().glob("?.py"))
"""
_MAIN = """
import json
import os
import sys
import pytest
from testbed.harness.summary import Summary
summary = Summary()
code = pytest.main(["-p", "testbed.harness.plugin", *sys.argv[1:]], plugins=[summary])
summary.call_the_roll(json.loads(os.environ.get("KNOWN", "{}")))
summary.show()
print(summary.last_line)
sys.exit(code)
"""


class Run:
    """A run of those tests in a folder of its own, of all of them by default."""

    def __init__(self, folder: Path, *words: str, tests: str = _TESTS, **variables: str) -> None:
        (folder / "test_them.py").write_text(tests)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -s --import-mode=importlib\n")
        known: Mapping[str, str] = {
            name: value
            for name, value in os.environ.items()
            if name not in (*VARIABLES, *INTERNAL) and not name.startswith("PYTEST_")
        }
        if "ONLY" not in variables:
            variables = {"ALL": "1", **variables}
        done = subprocess.run(
            [sys.executable, "-c", _MAIN, "--junitxml=junit.xml", "test_them.py", *words],
            cwd=folder, env={**known, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        self.code = done.returncode
        self.lines = done.stdout.splitlines()
        self.text = done.stdout
        self.junit = ET.parse(folder / "junit.xml").getroot()

    @property
    def last(self) -> str:
        return self.lines[-1]

    def passed(self) -> set[str]:
        """The names of JUnit's tests that passed."""
        return {
            f"{one.get('classname')}::{one.get('name')}"
            for one in self.junit.iter("testcase")
            if not {child.tag for child in one} & {"failure", "error", "skipped"}
        }


_LANES = ("-n", "2", "--dist", "loadgroup")


@pytest.mark.parametrize("words", [(), _LANES], ids=["one", "lanes"])
def test_each_result_is_a_test_of_its_own(tmp_path: Path, words: tuple[str, ...]) -> None:
    run = Run(tmp_path, *words)
    assert run.last == "7 passed, 2 failed", run.text
    assert run.code == 1
    assert run.passed() == {
        "compile-fail::test_first", "kernel-lint::test_second", "kunit::a", "kunit::same",
        "e2e-uml.forward::case", "e2e-uml.vlan::case", "python.test_them::test_unit",
    }  # fmt: skip
    suite = next(run.junit.iter("testsuite"))
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["10", "2", "0", "1"], ET.tostring(suite)
    assert any(line.endswith("FAILED  kunit: same (2): broken") for line in run.lines), run.text
    assert "    skipped kunit: c: no such thing" in run.lines
    assert "    FAILED  objects: test_cannot: it is not there | get it" in run.lines


@pytest.mark.parametrize("words", [(), _LANES], ids=["one", "lanes"])
def test_a_check_that_is_missing_is_a_failure(tmp_path: Path, words: tuple[str, ...]) -> None:
    known = {
        # It fails as it is.
        "kunit/test_many": {"a": "passed", "d": "passed"},
        "e2e-uml/forward.py": {"case": "passed"},
        "e2e-uml/vlan.py": {"insert": "passed"},
        "python/test_them.py": {"test_unit": "passed", "test_gone": "passed"},
    }
    run = Run(tmp_path, *words, KNOWN=json.dumps(known))
    assert run.last == "7 passed, 4 failed", run.text
    missed = [line.strip() for line in run.lines if ": see " in line and "FAILED" in line]
    assert sorted(set(missed)) == [
        "FAILED  e2e-uml: vlan.py: not reported: insert: see tools/testbed/record/checks",
        "FAILED  python: test_them.py: not reported: test_gone: see tools/testbed/record/checks",
    ]


def _said(run: Run) -> list[tuple[str, str, str]]:
    """Lane, test and process of each line of a lane."""
    found = [line.partition("|") for line in run.lines if " in " in line and "|" in line]
    return [(lane.strip(), *text.split(" in ")) for lane, _, text in found]  # type: ignore[misc]


def test_a_group_is_in_one_process_and_keeps_the_order(tmp_path: Path) -> None:
    run = Run(tmp_path, *_LANES)
    code = [(lane, pid) for lane, name, pid in _said(run)
            if name.strip() in ("kernel-lint", "compile-fail")]  # fmt: skip
    assert len(code) == 2, run.text
    assert len(set(code)) == 1, run.text


def test_groups_begin_in_their_order_however_large_they_are(tmp_path: Path) -> None:
    run = Run(tmp_path, "-n", "1", "--dist", "loadgroup",
              ONLY="objects,compile-fail,kernel-lint,kunit,e2e-uml/vlan")  # fmt: skip
    names = [name.strip() for _, name, _ in _said(run)]
    assert names == ["kunit", "kernel-lint", "compile-fail", "objects", "vlan.py"], run.text


def test_programs_go_to_the_lane_that_is_free() -> None:
    assert lanes.group_of("e2e-uml", "vlan.py") != lanes.group_of("e2e-uml", "sfp.py")
    assert lanes.group_of("e2e-rust", "vlan.py") == lanes.group_of("kunit")
    assert lanes.group_of("objects", "", "perf") == lanes.group_of("e2e-sleep")


def test_nothing_runs_beside_a_measurement(tmp_path: Path) -> None:
    run = Run(tmp_path, "-n", "3", "--dist", "loadgroup", tests=_BESIDE)
    assert run.last == "8 passed, 0 failed", run.text


def test_a_processor_has_two_lanes() -> None:
    assert [lanes.side_by_side(processors) for processors in (1, 2, 3, 64)] == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("every", "last"),
    [
        ("0", {"python.test_them::test_unit", "compile-fail::test_first",
               "kernel-lint::test_second", "e2e-uml.forward::case"}),
        ("rest", {"kunit::a", "kunit::same", "e2e-uml.vlan::case"}),
    ],
)  # fmt: skip
def test_the_tier_and_the_rest(tmp_path: Path, every: str, last: set[str]) -> None:
    assert Run(tmp_path, ALL=every).passed() == last


@pytest.mark.parametrize(
    ("only", "last"),
    [
        ("python", "1 passed, 0 failed"),
        ("e2e-uml", "2 passed, 0 failed"),
        ("e2e-uml/vlan", "1 passed, 0 failed"),
        ("e2e-uml/vlan.py", "1 passed, 0 failed"),
        ("kcsan,python", "2 passed, 0 failed"),
        ("selftests/xdp,selftests/ping.py", "1 passed, 0 failed"),
    ],
)
def test_only_selects(tmp_path: Path, only: str, last: str) -> None:
    assert Run(tmp_path, ONLY=only).last == last


def test_the_shards_are_everything_once(tmp_path: Path) -> None:
    found: list[str] = []
    for part in (1, 2, 3):
        folder = tmp_path / str(part)
        folder.mkdir()
        found += Run(folder, SHARD=f"{part}/3").passed()
    assert len(found) == len(set(found))
    assert set(found) == Run(tmp_path).passed()


@pytest.mark.parametrize("words", [(), _LANES], ids=["one", "lanes"])
def test_none_begins_after_the_limit(tmp_path: Path, words: tuple[str, ...]) -> None:
    run = Run(tmp_path, *words, LIMIT="0.001")
    assert run.last == "0 passed, 0 failed, 7 not run", run.text
    assert "    not run objects: test_cannot" in run.lines
    assert not _said(run), run.text


def test_a_limit_that_is_kept_changes_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, LIMIT="600")
    assert run.last == "7 passed, 2 failed", run.text


def test_a_test_that_runs_out_of_time_is_not_run(tmp_path: Path) -> None:
    run = Run(tmp_path, ONLY="up")
    assert run.last == "0 passed, 0 failed, 1 not run", run.text
    assert run.code == 0
