# SPDX-License-Identifier: GPL-2.0
"""Weakens each memory ordering of the lock-free code, and expects the model check to notice."""

from collections.abc import Collection
from pathlib import Path

import pytest

from testbed.boot import nicmodel
from testbed.build import orderings
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.ui import Failure, Step, say
from testbed.suites.test_host import build_tests

# A mutant may make threads wait for what never comes.
_TIMEOUT = 900


def build(env: Env, crates: Path, log: Path) -> Path:
    """Build the model check of a copy; returns the test program."""
    package = ("--package", orderings.COPIED_PACKAGE)
    found = build_tests(env, log, crates / "Cargo.toml", *package)
    if len(found) != 1:
        raise Failure(f"there is not one test program (log: {log})")
    return found[0][1]


def passes(program: Path, modules: Collection[str], log: Path) -> bool:
    """Whether the tests of some modules pass; one that does not end has not."""
    listed = proc.output([program, "--list", "--format", "terse"]) or ""
    names = orderings.chosen(listed, modules)
    if not names:
        raise Failure(f"{program} has no tests in {', '.join(modules)}")
    try:
        return proc.run([program, "--exact", *names], proc.fresh(log), what="the model check",
                        timeout=_TIMEOUT, check=False) == 0  # fmt: skip
    except Failure:
        return False


def judge(mutant: orderings.Mutant, survived: bool) -> str | None:
    """The fault of the outcome, if any."""
    if survived and mutant.name not in orderings.EQUIVALENT:
        return f"no test notices it (line {mutant.line + 1})"
    if not survived and mutant.name in orderings.EQUIVALENT:
        return "a test notices it, but it is listed as equivalent"
    return None


@pytest.mark.suite("orderings")
def test_orderings(env: Env, results: Results) -> None:
    """Each mutant fails a test, or there is an argument why it is right."""
    tools = env.clone / "tools"
    log = env.logs / "orderings.log"
    crates = orderings.copy(tools, nicmodel.target_folder(env) / "orderings/tools")
    mutants = orderings.mutants(tools)
    if not mutants:
        raise Failure("there is no ordering in the kernel's files")
    dead = equivalent = 0
    with Step(f"memory orderings: {len(mutants)} mutants") as step:
        modules = {one for mutant in mutants for one in mutant.modules}
        if not passes(build(env, crates, log), modules, env.logs / "orderings-none.log"):
            raise Failure("the model check fails without a mutant")
        results.add("without a mutant")
        for mutant in mutants:
            step.detail = mutant.name
            source = tools / orderings.CRATE / "src/kernel" / mutant.file
            orderings.put(crates, mutant.file, mutant.applied(source.read_text()))
            survived = passes(
                build(env, crates, log), mutant.modules, env.logs / "orderings-run.log"
            )
            orderings.put(crates, mutant.file, source.read_text())
            dead += not survived
            equivalent += survived and mutant.name in orderings.EQUIVALENT
            results.add(mutant.name, judge(mutant, survived))
    for name in sorted(orderings.EQUIVALENT.keys() - {mutant.name for mutant in mutants}):
        results.add(name, "there is no such mutant, but it is listed as equivalent")
    judged = len(mutants) - equivalent
    say(f"    {dead} of {judged} mutants fail a test, {equivalent} more are equivalent")
