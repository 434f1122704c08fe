# SPDX-License-Identifier: GPL-2.0
"""out/results/*.ktap: the results of a boot, for KernelCI and other readers of KTAP."""

import re
from collections.abc import Sequence
from pathlib import Path

from testbed.boot.dmesg import unstamped
from testbed.selftests.results import FAIL, PASS, SKIP, XFAIL, Case, Program

_KTAP = re.compile(r"^ *(?:KTAP version \d|1\.\.\d+|(?:not )?ok \d|# )")
_CASE = re.compile(r"^ +(not )?ok \d+ (\S+)(?: # SKIP ?(.*))?")
_DIRECTIVES = {SKIP: " # SKIP", XFAIL: " # XFAIL"}


def of_console(console: str) -> str:
    """The lines of KTAP in a console's text, from the first version line on."""
    found = [line for line in unstamped(console) if _KTAP.match(line)]
    first = next((n for n, line in enumerate(found) if line.startswith("KTAP version")), None)
    return "".join(f"{line}\n" for line in found[first:]) if first is not None else ""


def cases(console: str) -> list[tuple[str, Case]]:
    """The cases of a console's text, of suites in modules too: no plan has their number."""
    return [
        (found[2], Case(FAIL if found[1] else SKIP if found[3] is not None else PASS))
        for found in map(_CASE.match, unstamped(console))
        if found
    ]


def of_programs(programs: Sequence[Program]) -> str:
    """A test for each program, its cases below it."""
    lines = ["KTAP version 1", f"1..{len(programs)}"]
    for number, program in enumerate(programs, 1):
        lines += ["    KTAP version 1", f"    1..{len(program.cases)}"]
        lines += [
            "    " + _line(count, f"{program.name} {name}", case)
            for count, (name, case) in enumerate(program.cases.items(), 1)
        ]
        if program.count(FAIL):
            whole = Case(FAIL)
        elif program.cases and program.count(SKIP) == len(program.cases):
            whole = next(iter(program.cases.values()))
        else:
            whole = Case("pass")
        lines.append(_line(number, program.name, whole))
    return "".join(f"{line}\n" for line in lines)


def _line(number: int, name: str, case: Case) -> str:
    verdict = "not ok" if case.result == FAIL else "ok"
    directive = _DIRECTIVES.get(case.result, "")
    reason = f" {case.reason}" if directive and case.reason else ""
    return f"{verdict} {number} {name.replace('#', '')}{directive}{reason}"


def write(folder: Path, name: str, text: str) -> None:
    """One file of a boot."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.ktap").write_text(text)
