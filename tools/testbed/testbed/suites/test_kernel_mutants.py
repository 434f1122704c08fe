# SPDX-License-Identifier: GPL-2.0
"""Seeded defects of the abstractions, each of which a case of KUnit has to refuse.

A mutant is a patch to rust/kernel of the tree. Its head names the defect, and the case. As a kernel
takes minutes, one kernel has all of them: a defect is there if is_mutant(), of 0-switch.patch,
finds its name on the command line.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.boot.job import Job
from testbed.boot.uml import Uml
from testbed.build.kernel import SEEDED, UML, Kernel, build_lock, build_seeded
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.lock import Lock
from testbed.host.ui import Failure, Step, say
from testbed.suites import test_kunit as kunit
from testbed.suites.conftest import Ready
from testbed.workshop import Built

FOLDER = "tools/testbed/mutants/kernel"
SOURCE = "rust/kernel"
SWITCH = "0-switch"
_REFUSED_BY = re.compile(r"^Refused-by: (\w+\.\w+)$", re.M)
# All suites that refuse one.
_SUITES = "rust_net_*"
_BOOT_TIME = 300.0


@dataclass(frozen=True)
class Mutant:
    """A defect."""

    name: str
    about: str
    # SUITE.CASE of KUnit.
    case: str


def mutants(folder: Path) -> list[Mutant]:
    """The mutants of a folder, by name."""
    found = []
    for patch in sorted(folder.glob("*.patch")):
        text = patch.read_text(encoding="utf-8")
        case = _REFUSED_BY.search(text)
        if case is None and patch.stem != SWITCH:
            raise ValueError(f"{patch}: no line 'Refused-by: SUITE.CASE'")
        if case:
            found.append(Mutant(patch.stem, text.splitlines()[0].rstrip("."), case[1]))
    return found


def seed(folder: Path, patches: Path, log: Path) -> None:
    """Put all defects into a copy of the sources."""
    for patch in sorted(patches.glob("*.patch")):
        proc.run(["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "-i", patch], log,
                 what=f"{patch.name} on {SOURCE}", cwd=folder)  # fmt: skip


def _source(env: Env, tree: Path) -> Path:
    folder = env.out / "mutants/kernel"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(tree / SOURCE, folder)
    seed(folder, env.clone / FOLDER, env.logs / "kernel-mutants-patch.log")
    return folder


def _refused(built: Built, kernel: Kernel, mutant: str, suites: str) -> list[str]:
    """The cases of some suites that do not pass with a mutant, if one has that name."""
    script = built.env.logs / f"kernel-mutant-{mutant}.sh"
    script.write_text("#!/bin/sh\n")
    words = (*kunit.WORDS, f"kunit.filter_glob={suites}", f"mutant={mutant}")
    job = Job(script, "none", timeout=_BOOT_TIME, ports=0, kernel_words=words)
    name = f"kernel-mutant-{mutant}"
    with Step(f"KUnit with {mutant}"):
        outcome = Uml(built.env, kernel, built.tools, name).run(job)
    cases = kunit.parsed(built.env, name, kernel, outcome)
    return [case for case, status in cases if status not in ("PASS", "SKIP")]


@pytest.mark.suite("kernel-mutants")
def test_kernel_mutants(env: Env, ready: Ready, results: Results) -> None:
    """Each defect is noticed by its case, which passes without any."""
    built = ready(UML)
    tree = built.kernels[UML].tree
    with Lock(build_lock(env, SEEDED), "a kernel with defects"):
        source = _source(env, tree.work)
        kernel = build_seeded(env, tree, source, SOURCE, env.logs / "kernel-mutants.log")
        if bad := _refused(built, kernel, "none", _SUITES):
            raise Failure("KUnit fails without a defect", *bad)
        for mutant in mutants(env.clone / FOLDER):
            try:
                found = _refused(built, kernel, mutant.name, mutant.case.partition(".")[0])
            except Failure as failure:
                # A defect that takes the kernel down in the suite of its case has been noticed.
                if "panic: " not in failure.on_one_line:
                    raise
                found = [mutant.case, "which the kernel did not survive"]
            say(f"      {mutant.name}: {', '.join(found) or 'SURVIVED'}")
            results.add(mutant.about, None if mutant.case in found else f"{mutant.case} passes")
