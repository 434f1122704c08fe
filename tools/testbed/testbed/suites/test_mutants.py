# SPDX-License-Identifier: GPL-2.0
"""Seeded defects of the Rust driver, each of which a selftest has to refuse.

A mutant is a patch to the driver's folder. Its head names the defect, and the shortest program
of drivers/net/hw that notices it. It is built as an external module, which takes seconds.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.boot import dmesg
from testbed.boot.job import Job
from testbed.boot.live import REQUESTS, Live
from testbed.build import driver
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.ui import Step, say
from testbed.selftests.results import FAIL, parse
from testbed.suites.conftest import Ready

FOLDER = "tools/testbed/mutants"
_DRIVER = "drivers/net/ethernet/intel/ixgbe/rust"
_RUNNER = "tools/testbed/guest/run_selftests.py"
_REFUSED_BY = re.compile(r"^Refused-by: (\w+\.py)$", re.M)
_BOOT_TIME = 900.0
_PROGRAM_TIME = 600.0


@dataclass(frozen=True)
class Mutant:
    """A defect."""

    patch: Path
    about: str
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
    return [pytest.param(one, id=one.patch.stem) for one in mutants(clone / FOLDER)]


def _source(env: Env, mutant: Mutant) -> Path:
    """The driver's folder with the defect, in a place of its own."""
    folder = env.out / "mutants" / mutant.patch.stem
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(env.clone / _DRIVER, folder)
    proc.run(["patch", "-p1", "--no-backup-if-mismatch", "-i", mutant.patch],
             env.logs / "mutant.log", what=f"{mutant.patch.name} on {_DRIVER}",
             cwd=folder)  # fmt: skip
    return folder


def _run(live: Live, program: str) -> str | None:
    """The first objection to a driver, if there is any."""
    lines = live.run(f"drivers/net/hw/{program}", _PROGRAM_TIME, lambda _: None)
    broken = live.breaches()
    if broken:
        return f"judge: {broken[0].rule}"
    if live.died:
        return f"the guest ended: {live.died}"
    for found in parse(lines, "the guest ended"):
        for case, result in found.cases.items():
            if result.result == FAIL:
                return case
    complaints = dmesg.complaints(live.console(f"drivers/net/hw/{program}"))
    return str(complaints[0]) if complaints else None


@pytest.mark.suite("mutants")
@pytest.mark.parametrize("mutant", _parameters())
def test_mutant(env: Env, ready: Ready, results: Results, mutant: Mutant) -> None:
    """A defect is noticed."""
    built = ready(UML, with_selftests=True)
    made = driver.build(env, built.kernels[UML], _source(env, mutant))
    job = Job(env.clone / _RUNNER, "rust", timeout=_BOOT_TIME, modules=made.modules,
              kernel_words=["kunit.enable=0"], selftests=built.selftests, judge=True,
              variables={"REQUESTS": f"/mnt/job/{REQUESTS}"})  # fmt: skip
    with Step(f"{mutant.patch.stem}: {mutant.program}"):
        live = Live(built.machine(UML, f"mutant-{mutant.patch.stem}"), job)
        try:
            objection = _run(live, mutant.program)
        finally:
            live.kill()
    say(f"      {'killed by ' + objection if objection else 'SURVIVED'}")
    results.add(mutant.about, None if objection else "survived")
