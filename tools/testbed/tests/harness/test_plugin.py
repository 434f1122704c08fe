# SPDX-License-Identifier: GPL-2.0
"""make test's pytest plugin, with suites of a few results each."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.harness import lanes

_TESTS = """
import os
import pytest
from testbed.host.ui import Failure, say

@pytest.mark.suite("kunit")
def test_many(results):
    say(f"kunit in {os.getpid()}")
    results.add("a")
    results.add("same")
    results.add("same", "broken")
    results.skip("c", "no such thing")

@pytest.mark.suite("e2e-uml")
@pytest.mark.parametrize("program", ["forward.py", "vlan.py"])
def test_program(results, program):
    say(f"{program} in {os.getpid()}")
    results.add("case")

@pytest.mark.suite("objects")
def test_cannot(results):
    say(f"objects in {os.getpid()}")
    raise Failure("it is not there", "get it")

@pytest.mark.suite("kcsan")
def test_on_request(results):
    results.add("asked for")

@pytest.mark.suite("compile-fail")
def test_first():
    say(f"compile-fail in {os.getpid()}")

def test_unit():
    assert True
"""
_MAIN = """
import sys
import pytest
from testbed.harness.summary import Summary
summary = Summary()
code = pytest.main(["-p", "testbed.harness.plugin", *sys.argv[1:]], plugins=[summary])
summary.show()
print(summary.too_late, "too late")
print(summary.last_line)
sys.exit(code)
"""


class Run:
    """A run of those tests in a folder of its own."""

    def __init__(self, folder: Path, *words: str, **variables: str) -> None:
        (folder / "test_them.py").write_text(_TESTS)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -s --import-mode=importlib\n")
        known: Mapping[str, str] = {
            name: value
            for name, value in os.environ.items()
            if name not in ("ONLY", "SHARD", "LIMIT") and not name.startswith("PYTEST_")
        }
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


@pytest.mark.parametrize("words", [(), ("-n", "2", "--dist", "loadgroup")], ids=["one", "lanes"])
def test_each_result_is_a_test_of_its_own(tmp_path: Path, words: tuple[str, ...]) -> None:
    run = Run(tmp_path, *words)
    assert run.last == "6 passed, 2 failed", run.text
    assert run.code == 1
    assert run.passed() == {
        "compile-fail::test_first", "kunit::a", "kunit::same", "e2e-uml.forward::case",
        "e2e-uml.vlan::case",
        "python.test_them::test_unit",
    }  # fmt: skip
    suite = next(run.junit.iter("testsuite"))
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["9", "2", "0", "1"], ET.tostring(suite)
    assert any(line.endswith("FAILED  kunit: same (2): broken") for line in run.lines), run.text
    assert "    skipped kunit: c: no such thing" in run.lines
    assert "    FAILED  objects: test_cannot: it is not there | get it" in run.lines


def test_a_lane_is_in_one_process_and_keeps_the_order(tmp_path: Path) -> None:
    run = Run(tmp_path, "-n", "2", "--dist", "loadgroup")
    found = [line.split() for line in run.lines if " in " in line and "|" in line]
    for lane, names in {
        "debug": ["compile-fail", "kunit"],
        "uml": ["forward.py", "vlan.py"],
        "perf": ["objects"],
    }.items():
        mine = [(name, pid) for one, _, name, _, pid in found if one == lane]
        assert [name for name, _ in mine] == names, run.text
        assert len({pid for _, pid in mine}) == 1


def test_lanes_begin_in_their_order_however_long_they_are(tmp_path: Path) -> None:
    run = Run(tmp_path, "-n", "1", "--dist", "loadgroup",
              ONLY="objects,compile-fail,kunit,e2e-uml/vlan")  # fmt: skip
    names = [line.split()[2] for line in run.lines if " in " in line and "|" in line]
    assert names == ["vlan.py", "compile-fail", "kunit", "objects"], run.text


def test_a_processor_has_a_lane() -> None:
    assert [lanes.side_by_side(processors) for processors in (1, 2, 3, 64)] == [2, 2, 3, 4]


@pytest.mark.parametrize(
    ("only", "last"),
    [
        ("python", "1 passed, 0 failed"),
        ("e2e-uml", "2 passed, 0 failed"),
        ("e2e-uml/vlan", "1 passed, 0 failed"),
        ("e2e-uml/vlan.py", "1 passed, 0 failed"),
        ("kcsan,python", "2 passed, 0 failed"),
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


@pytest.mark.parametrize("words", [(), ("-n", "2", "--dist", "loadgroup")], ids=["one", "lanes"])
def test_none_begins_after_the_limit(tmp_path: Path, words: tuple[str, ...]) -> None:
    run = Run(tmp_path, *words, LIMIT="0.001")
    assert run.lines[-2:] == ["6 too late", "0 passed, 0 failed"], run.text
    assert "    skipped objects: test_cannot: no time was left, LIMIT=0.001" in run.lines
    assert " in " not in "".join(line for line in run.lines if "|" in line), run.text


def test_a_limit_that_is_kept_changes_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, LIMIT="600")
    assert run.lines[-2:] == ["0 too late", "6 passed, 2 failed"], run.text
