# SPDX-License-Identifier: GPL-2.0
"""Shards, reports of runners, and a persistent guest."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.boot.job import Job
from testbed.boot.live import END, REQUESTS, Live
from testbed.harness import shards
from testbed.host.ui import Failure
from testbed.suites import test_host as host
from testbed.suites import test_kunit as kunit


class Collected:
    """Stands in for Results."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None]] = []

    def add(self, name: str, problem: str | None = None) -> None:
        self.seen.append((name, problem))

    def skip(self, name: str, why: str) -> None:
        self.seen.append((name, f"SKIP {why}"))


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_shards_are_disjoint_complete_and_about_equal(parts: int) -> None:
    seconds = [float(n % 5 + 1) for n in range(100)]
    found = [shards.share(seconds, part, parts) for part in range(1, parts + 1)]
    assert sorted(index for part in found for index in part) == list(range(100))
    times = [sum(seconds[index] for index in part) for part in found]
    assert max(times) - min(times) <= 2 * max(seconds)


def test_a_long_group_leaves_no_part_empty() -> None:
    seconds = [975.0, 310.0, 152.0, *[20.0] * 38]
    found = [shards.share(seconds, part, 4) for part in range(1, 5)]
    assert found[:2] == [[0], [1, 2]]
    assert abs(len(found[2]) - len(found[3])) <= 2


def test_the_record_keeps_what_was_not_run(tmp_path: Path) -> None:
    (tmp_path / shards.RECORD).parent.mkdir(parents=True)
    shards.save(tmp_path, {"a x": 1.23, "b y": 2.0})
    shards.save(tmp_path, {"b y": 3.0})
    assert shards.load(tmp_path) == {"a x": 1.2, "b y": 3.0}


def test_what_a_crate_reports() -> None:
    found = Collected()
    lines = [
        {"type": "suite", "event": "started", "test_count": 3},
        {"type": "test", "event": "started", "name": "a"},
        # It has been running for a minute.
        {"type": "test", "event": "timeout", "name": "a"},
        {"type": "test", "event": "ok", "name": "a"},
        {"type": "test", "event": "failed", "name": "b", "stdout": "\nthread panicked\nat b.rs\n"},
        {"type": "test", "event": "ignored", "name": "c"},
        {"type": "suite", "event": "failed", "passed": 1, "failed": 1, "ignored": 1},
    ]
    assert host.crate_results(iter(lines), "k", found) == 1  # type: ignore[arg-type]
    assert found.seen == [
        ("k: a", None), ("k: b", "thread panicked | at b.rs"), ("k: c", "SKIP ignored"),
    ]  # fmt: skip


def test_what_cargo_has_built(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "   Compiling k\n"
        '{"reason":"compiler-artifact","manifest_path":"/t/k/Cargo.toml","target":{"name":"k"},'
        '"profile":{"test":true},"executable":"/o/k-1"}\n'
        '{"reason":"compiler-artifact","manifest_path":"/t/k/Cargo.toml","target":{"name":"k"},'
        '"profile":{"test":false},"executable":"/o/k"}\n'
    )
    assert host.executables(log) == [("k/k", Path("/o/k-1"), Path("/t/k"))]


def test_cases_of_kunit_have_their_groups_names() -> None:
    group = {"test_cases": [], "sub_groups": [
        {"name": "s", "sub_groups": [], "test_cases": [{"name": "a", "status": "PASS"},
                                                       {"name": "b", "status": "ERROR"}]},
    ]}  # fmt: skip
    assert list(kunit.cases(group)) == [("s.a", "PASS"), ("s.b", "ERROR")]


class Machine:
    """Stands in for a machine: a guest that prints requests, and may die."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = SimpleNamespace(clone=folder)
        self.log = folder / "console"

    def run(self, job: Job, on_line: Any) -> None:
        assert job.on_share is not None
        self.log.write_text("boot\n")
        job.on_share(self.folder)
        number = 0
        while not job.stop.is_set():
            path = self.folder / REQUESTS / str(number + 1)
            if not path.exists():
                continue
            number += 1
            request = path.read_text().strip()
            if request == END:
                return
            if request == "hangs":
                on_line("# begin hangs")
                continue
            if request == "dies":
                on_line("# begin dies")
                raise Failure("the kernel is dead", "see console")
            with self.log.open("a") as log:
                log.write(f"skbulk: begin {request}\nskbulk: end {request}\n")
            for line in (f"# begin {request}", "ok 1 x", f"# end {request} 0"):
                on_line(line)
        raise Failure("it was stopped")


def _live(folder: Path) -> Live:
    return Live(Machine(folder), Job(None, "none"))  # type: ignore[arg-type]


def test_a_guest_runs_one_program_after_the_other(tmp_path: Path) -> None:
    live, heard = _live(tmp_path), list[str]()
    for name in ("a", "b"):
        assert live.run(name, 10, heard.append) == [f"# begin {name}", "ok 1 x", f"# end {name} 0"]
        assert f"skbulk: end {name}" in live.console(name)
    assert len(heard) == 6
    assert live.alive
    assert live.close() == (None, "")


def test_a_guest_that_dies_says_why(tmp_path: Path) -> None:
    live = _live(tmp_path)
    assert live.run("dies", 10, lambda _: None) == ["# begin dies"]
    assert not live.alive
    assert live.died == "the kernel is dead | see console"
    assert live.close() == (live.died, "boot\n")


def test_a_guest_that_hangs_is_ended(tmp_path: Path) -> None:
    live = _live(tmp_path)
    assert live.run("hangs", 0.1, lambda _: None) == ["# begin hangs"]
    assert live.died == "it was stopped"


def test_a_guest_that_hangs_is_ended_when_there_is_enough(tmp_path: Path) -> None:
    live = _live(tmp_path)
    asked = iter([False, True])
    began = time.monotonic()
    assert live.run("hangs", 60, lambda _: None, lambda: next(asked)) == ["# begin hangs"]
    assert time.monotonic() - began < 30
    assert live.died == "it was stopped"
    assert next(asked, None) is None


def test_a_guest_can_be_ended(tmp_path: Path) -> None:
    live = _live(tmp_path)
    live.kill()
    assert live.died == "it was stopped"


def test_a_failed_boot_is_no_hang(tmp_path: Path) -> None:
    machine = SimpleNamespace(log=tmp_path / "console", env=SimpleNamespace(clone=tmp_path))

    def run(_job: Job, _on_line: Any) -> None:
        raise Failure("no memory")

    machine.run = run
    live = Live(machine, Job(None, "none"))  # type: ignore[arg-type]
    assert live.run("a", 10, lambda _: None) == []
    assert live.died == "no memory"
