# SPDX-License-Identifier: GPL-2.0
"""KUnit and the examples of the documentation, judged by the kernel's own kunit.py."""

import json
import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.boot.dmesg import unstamped
from testbed.boot.job import Job, Outcome
from testbed.build.kernel import UML, UP, Kernel
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.ui import Failure, Step, say
from testbed.suites.conftest import Ready
from testbed.workshop import Built

WORDS = ("kunit.enable=1", "kunit.autorun=1")
# Drivers have their cases in modules, which run when the module is loaded.
MODULES = ("ixgbe_rust", "rust_driver_e1000e", "rust_driver_net")
# Of tests in Rust below a #[cfg], which KUnit skips without a reason.
_SKIPPED = "the configuration leaves it out"
# Lines of a complaint, with the registers and the calls.
_TRACE = 60
_CASE = re.compile(r"^ +(?P<bad>not )?ok \d+ (?P<name>\S+)(?P<skip> # SKIP ?(?P<why>.*))?")
# The kernel's first line names the options that change all of it.
_UP = re.compile(r"^(?:\[[^]]*\] )?Linux version .* #\d+ (?!.*\bSMP\b)", re.M)


@pytest.mark.suite("kunit")
def test_debug(ready: Ready, results: Results) -> None:
    """In the debug kernel."""
    # The kernel's own examples of Rust timers are on the stack, without the annotation
    # that the checker of timers needs.
    run(ready, results, "debug", "kunit", "in the debug kernel", 900, words=("no_debug_objects",))


@pytest.mark.suite("kunit-uml")
def test_uml(ready: Ready, results: Results) -> None:
    """Natively, with two processors at full speed."""
    run(ready, results, UML, "kunit-uml", "in User-Mode Linux, 2 CPUs", 300)


@pytest.mark.suite("up")
def test_one_processor(ready: Ready, results: Results) -> None:
    """Natively, in a kernel for one processor only."""
    outcome = run(ready, results, UP, "kunit-up", "in User-Mode Linux without SMP", 300, cpus=1)
    on = _UP.search(outcome.console)
    results.add("this kernel is for one processor", None if on else "it says SMP, or nothing")


@pytest.mark.suite("kunit-uml")
def test_modules(ready: Ready, results: Results) -> None:
    """Those of drivers, natively: nothing else loads their modules with KUnit on."""
    built = ready(UML)
    for module in MODULES:
        # The name of a module begins those of its suites: leave out all others.
        job = Job(_script(built, module, f"exec modprobe {module}"), "none", timeout=120, ports=0,
                  kernel_words=(*WORDS, f"kunit.filter_glob={module}*"))  # fmt: skip
        with Step(f"KUnit of {module} in User-Mode Linux"):
            outcome = built.uml(f"kunit-{module}").run(job)
        # kunit.py has no results of suites that begin later: no plan has their number.
        found = [case for case in map(_CASE.match, unstamped(outcome.console)) if case]
        for case in found:
            if case["skip"]:
                results.skip(f"{module}: {case['name']}", case["why"] or _SKIPPED)
            else:
                results.add(f"{module}: {case['name']}", "FAIL" if case["bad"] else None)
        if outcome.code or not found:
            raise Failure(f"{module} ran {len(found)} cases", f"exit code {outcome.code}")
        results.none(f"{module}: the kernel does not complain", outcome.complaints)


def _script(built: Built, name: str, command: str) -> Path:
    # A file of its own: other lanes boot at the same time.
    script = built.env.logs / f"{name}.sh"
    script.write_text(f"#!/bin/sh\n{command}\n")
    return script


def run(
    ready: Ready,
    results: Results,
    config: str,
    name: str,
    where: str,
    seconds: float,
    *,
    cpus: int = 2,
    words: Sequence[str] = (),
    but: Container[str] = (),
    known: re.Pattern[str] | None = None,
) -> Outcome:
    """Boot a kernel, and report the results of its tests; `judge` explains the last two."""
    built = ready(config)
    # KUnit has run before the script.
    job = Job(_script(built, name, "true"), "none", timeout=seconds, ports=0, cpus=cpus,
              accel=built.accel(config), kernel_words=(*WORDS, *words))  # fmt: skip
    with Step(f"KUnit and doc examples {where}"):
        outcome = built.machine(config, name).run(job)
    judge(built, name, built.kernels[config], outcome, results, but, known)
    return outcome


def judge(
    built: Built,
    name: str,
    kernel: Kernel,
    outcome: Outcome,
    results: Results,
    but: Container[str] = (),
    known: re.Pattern[str] | None = None,
) -> None:
    """Report kunit.py's results for a console.

    Complaints of the kinds in `but` are ignored, and those with `known` in their traces.
    """
    why = reasons(outcome.console)
    for case, status in parsed(built.env, name, kernel, outcome):
        if status == "SKIP":
            results.skip(case, why.get(case.rpartition(".")[2], _SKIPPED))
        else:
            results.add(case, None if status == "PASS" else status)
    bad = [
        one
        for one in outcome.complaints
        if one.kind not in but and not (known and has_in_trace(outcome.console, one.line, known))
    ]
    results.none("the kernel does not complain during KUnit", bad)


def parsed(env: Env, name: str, kernel: Kernel, outcome: Outcome) -> list[tuple[str, str]]:
    """The cases on a console, as the kernel's kunit.py has them: name and status."""
    plain = env.logs / f"{name}.log"
    plain.write_text(outcome.console.replace("\r", ""))
    tool = kernel.tree.work / "tools/testing/kunit/kunit.py"
    log, record = env.logs / f"test-{name}.log", env.logs / f"test-{name}.json"
    for path in (log, record):
        path.unlink(missing_ok=True)
    command: list[str | Path] = ["python3", tool, "parse", f"--json={record}", plain]
    proc.run(command, log, what="kunit.py parse", check=False)
    if not record.exists():
        raise Failure("kunit.py found no result", f"log: {log}")
    for line in log.read_text(errors="replace").splitlines():
        if "Ran " in line:
            say(f"    kunit.py: {line.partition('Ran')[1]}{line.partition('Ran')[2]}")
    found = list(cases(json.loads(record.read_text())))
    if not found:
        raise Failure("KUnit ran no test", f"log: {log}")
    return found


def reasons(console: str) -> dict[str, str]:
    """Why cases were skipped, by their names, which kunit.py's record lacks."""
    found = map(_CASE.match, unstamped(console))
    return {case["name"]: case["why"] for case in found if case and case["why"]}


def has_in_trace(console: str, line: str, what: re.Pattern[str]) -> bool:
    """Whether each complaint with this line is followed by a trace that has it."""
    lines = console.splitlines()
    found = [at for at, one in enumerate(lines) if line in one]
    return bool(found) and all(
        any(what.search(one) for one in lines[at : at + _TRACE]) for at in found
    )


def cases(group: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """The cases of a group of kunit.py's record and of those below it: name and status."""
    for case in group["test_cases"]:
        yield f"{path}{case['name']}", case["status"]
    for one in group["sub_groups"]:
        yield from cases(one, f"{path}{one['name']}.")
