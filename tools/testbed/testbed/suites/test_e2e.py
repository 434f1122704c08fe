# SPDX-License-Identifier: GPL-2.0
"""End to end: the selftests of drivers/net/hw of this clone, on the modelled card or another.

One boot runs all programs of a suite; after a crash the next program has a new one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.boot import dmesg
from testbed.boot.card import MODELLED
from testbed.boot.job import Job
from testbed.boot.live import REQUESTS, Live
from testbed.build.kernel import UML
from testbed.harness import ktap
from testbed.harness.results import Results
from testbed.host.ui import Failure, Step, say
from testbed.selftests.results import FAIL, SKIP, XFAIL, Program, parse
from testbed.suites.conftest import Ready

FOLDER = "tools/testing/selftests/drivers/net/hw"
_RUNNER = "tools/testbed/guest/run_selftests.py"
# The first may switch off the checker of DMA mappings, and the second looks for leaks of all
# the others.
_LAST = ("alloc_fail.py", "leaks.py")
# Seconds for a program whose own limit in the guest fails; for a boot.
_PROGRAM_TIME = 1000.0
_BOOT_TIME = 6000.0
_EXPECTED = re.compile(r"skbulk: provokes (.+?)\r?$", re.M)


@dataclass(frozen=True)
class Kind:
    """A suite: a driver in one of the kernels."""

    suite: str
    driver: str
    config: str
    # Only these, or all.
    programs: tuple[str, ...] = ()
    # Not these.
    without: tuple[str, ...] = ()
    # A key of CARDS.
    card: str = MODELLED
    # For the kernel's command line, and a line of the console that shows their effect.
    words: tuple[str, ...] = ()
    sign: str = ""
    # Whether the model judges the driver.
    judged: bool = False


# Programs that need nothing of a card that only the modelled one has.
GENERAL = (
    "driver_stats.py",
    "forward.py",
    "intr_modes.py",
    "leaks.py",
    "lifecycle.py",
    "reconfig_traffic.py",
    "ring_sizes.py",
    "rx_filter.py",
    "tcp_stream.py",
    "tx_features.py",
    "tx_timestamp.py",
)
# Programs that look at the data of frames, on the modelled card.
_DATA = ("faulty_device.py", "link_loss.py", "multiqueue.py", "segmentation.py", "vlan.py")
# Programs about queues of the stack.
_QUEUES = (
    "net_pair.py",
    "sch_alf.py",
    "sch_alf_changes.py",
    "xmit_llist.py",
    "xmit_llist_selftests.py",
)
# Programs that e2e-uml runs in a fraction of the time that they take in the debug kernel.
_LONG = (
    "controls.py",
    "mac_stats.py",
    "net_pair.py",
    "pci_error.py",
    "segmentation.py",
    "sfp.py",
    "vlan.py",
)
KINDS = (
    Kind("e2e-rust", "rust", "debug", without=_LONG, judged=True),
    Kind("e2e-debug", "rust", "debug", (*_LONG, "leaks.py"), judged=True),
    Kind("e2e-debug-e1000e", "rust", "debug", (*GENERAL, "alloc_fail.py"), card="e1000e"),
    Kind("e2e-uml", "rust", UML, judged=True),
    # A test of the model and its judge: the driver needs no checkers, and queues are the same
    # before each driver.
    Kind("e2e-c", "c", UML, without=_QUEUES, judged=True),
    # The other kernels in which make test runs the Rust driver cannot sleep.
    Kind("e2e-sleep", "rust", "perf", ("pci_error.py", "power.py"), judged=True),
    # The general ones: of the others, each case would skip itself.
    Kind("e2e-e1000e", "rust", "perf", GENERAL, card="e1000e"),
    # A buffer that is not handed over in time keeps old data in its bounce buffer.
    Kind(
        "bounce",
        "rust",
        "perf",
        (*GENERAL, *_DATA),
        words=("swiotlb=force", "loglevel=7"),
        sign="software IO TLB: area num",
        judged=True,
    ),
    # Memory that the driver has unmapped, or never mapped, is out of the card's reach.
    Kind(
        "iommu",
        "rust",
        "iommu",
        (*GENERAL, *_DATA),
        words=("intel_iommu=on", "iommu.strict=1", "loglevel=7"),
        sign="DMAR: Intel(R) Virtualization Technology for Directed I/O",
        judged=True,
    ),
    Kind("cfi", "rust", "cfi", judged=True),
    Kind("rt", "rust", "rt", judged=True),
    Kind("arm64", "rust", "arm64", GENERAL, card="e1000e"),
    Kind("arm64-82599", "rust", "arm64", (*GENERAL, *_DATA), judged=True),
)


def programs(clone: Path) -> list[str]:
    """The programs in their order; files that are not executable are their helpers."""
    found = [
        path.name for path in sorted((clone / FOLDER).glob("*.py")) if os.access(path, os.X_OK)
    ]
    return sorted(found, key=lambda name: _LAST.index(name) if name in _LAST else -1)


def programs_of(clone: Path, suite: str) -> list[str]:
    """The programs of a suite; none if the suite has no programs."""
    return [
        name
        for kind in KINDS
        for name in programs(clone)
        if kind.suite == suite and name in (kind.programs or (name,)) and name not in kind.without
    ]


@dataclass
class Guests:
    """The guest of the current suite, booted for its first program."""

    ready: Ready
    kind: Kind | None = None
    live: Live | None = None
    _boots: dict[str, int] = field(default_factory=dict)
    _done: dict[str, list[Program]] = field(default_factory=dict)

    def of(self, kind: Kind) -> tuple[Live, bool]:
        """The guest of a suite, and whether it is new: the last may have died."""
        if self.live is not None and self.live.alive and self.kind == kind:
            return self.live, False
        self.close()
        number = self._boots[kind.suite] = self._boots.get(kind.suite, 0) + 1
        built = self.ready(kind.config, with_selftests=True)
        job = Job(
            built.env.clone / _RUNNER,
            kind.driver,
            timeout=_BOOT_TIME,
            card=kind.card,
            accel=built.accel(kind.config),
            kernel_words=["kunit.enable=0", *kind.words],
            selftests=built.selftests,
            judge=kind.judged,
            variables={"REQUESTS": f"/mnt/job/{REQUESTS}"},
        )
        self.kind = kind
        self.live = Live(built.machine(kind.config, f"{kind.suite}-{number}"), job)
        return self.live, True

    def note(self, kind: Kind, program: Program) -> None:
        """Rewrite the suite's KTAP with this program in it."""
        done = self._done.setdefault(kind.suite, [])
        done.append(program)
        folder = self.ready(kind.config).env.out / "results"
        ktap.write(folder, kind.suite, ktap.of_programs(done))

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
def guests(ready: Ready) -> Iterator[Guests]:
    """Guests that persist until the end of their suites."""
    made = Guests(ready)
    try:
        yield made
        made.close()
    finally:
        made.kill()


def _parameters() -> list[Any]:
    clone = Path(__file__).resolve().parents[4]
    return [
        pytest.param(kind, name, id=f"{kind.suite}/{name}", marks=pytest.mark.suite(kind.suite))
        for kind in KINDS
        for name in programs_of(clone, kind.suite)
    ]


@pytest.mark.parametrize(("kind", "program"), _parameters())
def test_program(guests: Guests, results: Results, kind: Kind, program: str) -> None:
    """A program: its cases, and that the kernel does not complain."""
    live, new = guests.of(kind)
    name = f"drivers/net/hw/{program}"
    with Step(f"{kind.suite}: {program}"):
        lines = live.run(name, _PROGRAM_TIME, _follower(program))
        console = live.console(name)
        breaches = live.breaches()
    found = (parse(lines, f"the guest ended: {live.died}") or [_absent(name, live.died)])[0]
    guests.note(kind, found)
    for case, result in found.cases.items():
        if result.result in (SKIP, XFAIL):
            results.skip(case, result.reason)
        else:
            results.add(case, result.reason or "failed" if result.result == FAIL else None)
    broken = "; ".join(str(one) for one in breaches[:3])
    results.add(f"no rule of the data sheet broken in {program}", broken or None)
    if new:
        boot, mark, console = console.partition(f"skbulk: begin {name}")
        _judge_console(results, "boot and probe", boot + mark)
        if kind.sign:
            absent = None if kind.sign in boot else f"the console does not say '{kind.sign}'"
            results.add(f"{' '.join(kind.words)} is in effect", absent)
    _judge_console(results, program, console)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=kind.suite, marks=pytest.mark.suite(kind.suite)) for kind in KINDS],
)
def test_end(guests: Guests, results: Results, kind: Kind) -> None:
    """The guest powers off without a complaint."""
    if guests.live is None or guests.kind != kind:
        return
    problem, console = guests.end()
    results.add("the guest powers off", problem)
    _judge_console(results, "the end", console)


def _absent(name: str, why: str) -> Program:
    program = Program(name)
    program.trouble("the guest is ready", why)
    return program


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
    found = _complaints(text)
    results.add(f"no kernel complaint in {where}", "; ".join(str(one) for one in found[:3]) or None)
