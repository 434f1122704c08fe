# SPDX-License-Identifier: GPL-2.0
"""Seeded defects of the Rust driver, each of which a selftest has to refuse.

A mutant is a patch to the driver's folder. Its head names the defect, and the shortest program
of drivers/net/hw that notices it, with its arguments. It is built as an external module, which
takes seconds. JUDGE=0 shows which of them live without the judge of the model.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.boot import dmesg
from testbed.boot.job import Job
from testbed.boot.judge import Breach
from testbed.boot.live import Live
from testbed.build import driver
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.ui import Failure, Step, say
from testbed.selftests.results import FAIL, SKIP, parse
from testbed.suites.conftest import Ready

FOLDER = "tools/testbed/mutants"
_DRIVER = "drivers/net/ethernet/intel/ixgbe/rust"
_REFUSED_BY = re.compile(r"^Refused-by: (\w+\.py.*)$", re.M)
# The driver without a defect has to pass it.
_CONTROL = "forward.py -t set_up"
_BOOT_TIME = 900.0
_PROGRAM_TIME = 600.0
# How KTAP begins the line of a failed case.
_FAILED = "not ok "


@dataclass(frozen=True)
class Mutant:
    """A defect."""

    patch: Path
    about: str
    # The line that run_selftests.py takes, below drivers/net/hw.
    program: str


def mutants(folder: Path) -> list[Mutant]:
    """The mutants of a folder, by name."""
    found = []
    for patch in sorted(folder.glob("*.patch")):
        text = patch.read_text(encoding="utf-8")
        program = _REFUSED_BY.search(text)
        if program is None:
            raise ValueError(f"{patch}: no line 'Refused-by: PROGRAM.py'")
        found.append(Mutant(patch, text.splitlines()[0].rstrip("."), program[1]))
    return found


def _parameters() -> list[object]:
    clone = Path(__file__).resolve().parents[4]
    return [pytest.param(one.patch.stem, one, id=f"mutants/{one.patch.stem}")
            for one in mutants(clone / FOLDER)]  # fmt: skip


def _source(env: Env, patch: Path | None) -> Path:
    """The driver's folder with a defect, or without one, in a place of its own."""
    folder = env.out / "mutants" / (patch.stem if patch else "none")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(env.clone / _DRIVER, folder)
    if patch:
        proc.run(["patch", "-p1", "--no-backup-if-mismatch", "-i", patch],
                 env.logs / "mutant.log", what=f"{patch.name} on {_DRIVER}",
                 cwd=folder)  # fmt: skip
    return folder


def _objection(
    ready: Ready, patch: Path | None, suite: str, program: str, judge: bool = True
) -> str | None:
    """Build the driver with a defect, or without one, and run a program: the first objection."""
    built = ready(UML, with_selftests=True)
    env = built.env
    made = driver.build(env, built.kernels[UML], _source(env, patch))
    job = Job(None, "rust", timeout=_BOOT_TIME, modules=made.modules,
              selftests=built.selftests, judge=judge)  # fmt: skip
    with Step(f"{suite}: {program}"):
        live = Live(built.machine(UML, f"mutant-{suite}"), job)
        try:
            return _run(live, program)
        finally:
            live.kill()


def _run(live: Live, program: str) -> str | None:
    """The first objection to a driver, if there is any."""
    broken: list[Breach] = []
    failed: list[str] = []

    def follow(line: str) -> None:
        if line.startswith(_FAILED):
            failed.append(line)

    def is_caught() -> bool:
        broken.extend(live.breaches())
        return bool(broken or failed)

    # A defect that one case or the judge has noticed may well be one that all other cases wait
    # for in vain.
    lines = live.run(f"drivers/net/hw/{program}", _PROGRAM_TIME, follow, is_caught)
    broken.extend(live.breaches())
    if broken:
        return f"judge: {broken[0].rule}"
    name = f"drivers/net/hw/{program.split()[0]}"
    if live.died and not failed:
        if complaints := dmesg.complaints(live.console(name)):
            return str(complaints[0])
        if not lines:
            raise Failure(f"{name} has not begun: {live.died}")
        return f"the guest ended: {live.died}"
    seen = 0
    for found in parse(lines, "the guest ended"):
        for case, result in found.cases.items():
            seen += result.result != SKIP
            if result.result == FAIL:
                return case
    if not seen:
        raise Failure(f"{name} ran no case")
    complaints = dmesg.complaints(live.console(name))
    return str(complaints[0]) if complaints else None


@pytest.fixture(scope="session")
def control(ready: Ready) -> None:
    """Without a defect there is no objection: those to mutants are to the mutants."""
    if objection := _objection(ready, None, "none", _CONTROL):
        raise Failure(f"the driver without a defect: {objection}")


@pytest.mark.suite("mutants")
@pytest.mark.usefixtures("control")
@pytest.mark.parametrize(("program", "mutant"), _parameters())
def test_mutant(
    env: Env, ready: Ready, results: Results, program: str, mutant: Mutant
) -> None:  # fmt: skip
    """A defect is noticed."""
    judge = not env.settings.given("JUDGE") or env.settings.switch("JUDGE")
    objection = _objection(ready, mutant.patch, program, mutant.program, judge)
    say(f"      {program} {f'killed by {objection}' if objection else 'SURVIVED'}")
    if objection or judge:
        results.add(mutant.about, None if objection else "survived")
    else:
        results.skip(mutant.about, "lives without the judge")
