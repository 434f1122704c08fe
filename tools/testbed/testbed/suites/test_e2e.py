# SPDX-License-Identifier: GPL-2.0
"""End to end: the selftests of drivers/net/hw of this clone, on the modelled card or another.

A lane's guest runs one program of a suite after the other; after a crash the next program has a
new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.boot import dmesg
from testbed.boot.job import Job
from testbed.boot.live import Live
from testbed.env import Env
from testbed.harness.plugin import lane_of
from testbed.harness.results import NEXT, Results
from testbed.host.ui import Failure, Step, say
from testbed.selftests.kinds import KINDS, Kind, programs_of
from testbed.selftests.results import SKIP, Case, Program, parse, silent
from testbed.suites.conftest import Ready

# Seconds for a program whose own limit in the guest fails; for a boot.
_PROGRAM_TIME = 1000.0
_BOOT_TIME = 6000.0
_EXPECTED = re.compile(r"skbulk: provokes (.+?)\r?$", re.M)


@dataclass
class Guests:
    """This lane's guest of the current suite, booted for the first program."""

    env: Env
    ready: Ready
    lane: int
    kind: Kind | None = None
    live: Live | None = None
    _boots: dict[str, int] = field(default_factory=dict)

    def of(self, kind: Kind) -> tuple[Live, bool]:
        """The guest of a suite, and whether it is new: the last may have died."""
        if self.live is not None and self.live.alive and self.kind == kind:
            return self.live, False
        self.close()
        number = self._boots[kind.suite] = self._boots.get(kind.suite, 0) + 1
        built = self.ready(kind.config, with_selftests=True)
        job = Job(
            None,
            kind.driver,
            timeout=_BOOT_TIME,
            card=kind.card,
            accel=built.accel(kind.config),
            kernel_words=kind.words,
            selftests=built.selftests,
            judge=kind.judged,
        )
        self.kind = kind
        name = f"{kind.suite}-{self.lane}-{number}"
        self.live = Live(built.machine(kind.config, name), job)
        return self.live, True

    def end(self) -> tuple[str | None, str]:
        """Power the guest off; returns the problem and the rest of its console."""
        live, self.live = self.live, None
        return live.close() if live is not None else (None, "")

    def close(self) -> None:
        """The same without a test that judges it: a problem is a `Failure`."""
        alive = self.live is not None and self.live.alive
        problem, console = self.end()
        found = [str(one) for one in _complaints(console)]
        # A guest that has died was a program's failure.
        if alive and (problem or found):
            suite = self.kind.suite if self.kind else ""
            raise Failure(f"the guest of {suite} at its end: {problem or found[0]}")

    def kill(self) -> None:
        """End it at once."""
        if self.live is not None:
            self.live.kill()


@pytest.fixture(scope="session")
def guests(request: pytest.FixtureRequest, env: Env, ready: Ready) -> Iterator[Guests]:
    """Guests that persist until the end of their suites."""
    made = Guests(env, ready, lane_of(request.config))
    try:
        yield made
        made.close()
    finally:
        made.kill()


@pytest.fixture
def end(request: pytest.FixtureRequest, guests: Guests, kind: Kind) -> Iterator[None]:
    """After this lane's last program of a suite, the guest powers off without a complaint."""
    yield
    following = getattr(request.node.stash[NEXT], "callspec", None)
    if guests.live is None or (following and following.params.get("kind") == kind):
        return
    problem, console = guests.end()
    results = Results(request.node, kind.suite, listed=False)
    results.add("the guest powers off", problem)
    _judge_console(results, "the end", console)


def _parameters() -> list[Any]:
    clone = Path(__file__).resolve().parents[4]
    return [
        pytest.param(
            kind, name, id=f"{kind.suite}/{name}",
            marks=[pytest.mark.suite(kind.suite),
                   *([pytest.mark.beyond] if name in kind.beyond else [])],
        )
        for kind in KINDS
        for name in programs_of(clone, kind.suite)
    ]  # fmt: skip


@dataclass
class _Run:
    """One run of a program."""

    program: Program
    # Rules of the datasheet that the driver broke.
    broken: str
    console: str

    @classmethod
    def of(cls, live: Live, kind: Kind, program: str) -> _Run:
        name = kind.path(program)
        with Step(f"{kind.suite}: {program}"):
            lines = live.run(name, _PROGRAM_TIME, _follower(program))
            console = live.console(name)
            broken = "; ".join(str(one) for one in live.breaches()[:3])
        found = parse(lines, f"the guest ended: {live.died}") or [
            silent(name, "the guest is ready", live.died)
        ]
        return cls(found[0], broken, console)

    def problems(self) -> dict[str, str]:
        """The failures and their reasons."""
        found = {name: case.problem for name, case in self.program.cases.items()
                 if case.problem}  # fmt: skip
        if self.broken:
            found["no rule of the data sheet broken"] = self.broken
        if complaints := _complaints(self.console):
            found["no kernel complaint"] = str(complaints[0])
        return found

    def after(self, first: _Run) -> _Run:
        """This run, the second one, with the failures of the first as skipped cases."""
        for name, why in first.problems().items():
            self.program.add(f"{name}, first run", Case(SKIP, f"failed once: {why}"))
        return self


@pytest.mark.parametrize(("kind", "program"), _parameters())
@pytest.mark.usefixtures("end")
def test_program(
    request: pytest.FixtureRequest, guests: Guests, results: Results, kind: Kind, program: str
) -> None:
    """A program: its cases, and that the kernel does not complain."""
    live, new = guests.of(kind)
    run = _Run.of(live, kind, program)
    boot, mark, console = run.console.partition(f"skbulk: begin {kind.path(program)}")
    if new:
        _judge_boot(Results(request.node, kind.suite, listed=False), kind, boot + mark)
        run.console = console
    if kind.control and live.alive and run.problems():
        run = _Run.of(live, kind, program).after(run)
    results.cases(run.program.cases)
    results.add(f"no rule of the data sheet broken in {program}", run.broken or None)
    _judge_console(results, program, run.console)


def _judge_boot(results: Results, kind: Kind, console: str) -> None:
    _judge_console(results, "boot and probe", console)
    if kind.sign:
        results.says(f"{' '.join(kind.words)} is in effect", kind.sign, console)


def _follower(program: str) -> Callable[[str], None]:
    stem = Path(program).stem

    def follow(line: str) -> None:
        if line.startswith(("ok ", "not ok ")):
            say(f"      {line.replace(f' {stem}.', f' {stem}: ')}")

    return follow


def _complaints(text: str) -> list[dmesg.Complaint]:
    """All but those that a test announced."""
    return dmesg.complaints(text, tuple(_EXPECTED.findall(text)))


def _judge_console(results: Results, where: str, text: str) -> None:
    results.none(f"no kernel complaint in {where}", _complaints(text))
