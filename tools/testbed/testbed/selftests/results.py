# SPDX-License-Identifier: GPL-2.0
"""Reads the output of the kernel's selftests: KTAP, and the lines of its shell libraries.

Every case has a result, a skip its reason, and a failure the words of the check that failed. A
program that ends without a result for a case that it announced has failed there.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

PASS, FAIL, SKIP, XFAIL = "pass", "fail", "skip", "xfail"
# The exit code of a skipped program.
_SKIPPED = 4
_TIMED_OUT = 124

_BEGIN = re.compile(r"^# begin (\S+)$")
_END = re.compile(r"^# end (\S+) (\d+)$")
_LOST = re.compile(r"^# lost (\S+): (.*)$")
_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*# SKIP\s*(.*))?$")
_CASE = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*(.*)$")
_DIRECTIVE = re.compile(r"#\s*(SKIP|XFAIL|TODO)\b\s*(.*)$", re.I)
# forwarding/lib.sh: the reason stands on the next line, behind a tab.
_SHELL = re.compile(r"^TEST: (.*?)\s+\[\s*(OK|FAIL|SKIP|XFAIL)\s*\]$")
_SHELL_RESULTS = {"OK": PASS, "FAIL": FAIL, "SKIP": SKIP, "XFAIL": XFAIL}
_SHELL_SKIP = re.compile(r"^(?:TEST: )?SKIP: (.*?)(?:\s+\[ OK \])?$")
# The lines with the reason of a failed check or an exception.
_CHECK = re.compile(r"^# Check failed (.*)$")
_EXCEPTION = re.compile(r"^# Exception\| (\S+?(?:Error|Failure|Exception|Ex|Timeout|Expired)\b.*)$")
_STDERR = re.compile(r"^# Exception\|\s+(STDERR: .*)$")
_LONGEST = 300


@dataclass(frozen=True)
class Case:
    """The result of one case."""

    result: str
    reason: str = ""

    @property
    def problem(self) -> str | None:
        """The reason of a failure; None without one."""
        return (self.reason or "failed") if self.result == FAIL else None


@dataclass
class Program:
    """A program's results."""

    name: str
    code: int | None = None
    cases: dict[str, Case] = field(default_factory=dict)
    # Problems beside its cases: of the guest, the port, the kernel, or the time limit.
    troubles: list[str] = field(default_factory=list)

    def add(self, name: str, case: Case) -> None:
        """Add a case; a name that exists already gets a number."""
        unique, count = name, 1
        while unique in self.cases:
            count += 1
            unique = f"{name} ({count})"
        self.cases[unique] = case

    def trouble(self, name: str, why: str) -> None:
        """Add a problem beside the cases, as a failed case."""
        self.troubles.append(why)
        self.add(name, Case(FAIL, why[:_LONGEST]))

    def count(self, *results: str) -> int:
        """The number of cases with one of these results."""
        return sum(case.result in results for case in self.cases.values())


def silent(name: str, case: str, why: str) -> Program:
    """A program of which there are no lines."""
    program = Program(name)
    program.trouble(case, why)
    return program


class _Reader:
    """Reads the lines of one program."""

    def __init__(self, name: str) -> None:
        self.program = Program(name)
        self._stem = name.rpartition("/")[2].rpartition(".")[0]
        self._planned: int | None = None
        self._why = ""
        self._skip = ""
        self._last_shell = ""
        self._last_words = ""

    def line(self, line: str) -> None:
        """One line between the marks."""
        if match := _PLAN.match(line):
            self._planned = int(match[1])
            self._skip = match[2] or self._skip
        elif match := _CASE.match(line):
            self._case(bool(match[1]), match[3])
        elif match := _SHELL_SKIP.match(line):
            self._skip = match[1]
        elif match := _SHELL.match(line):
            self.program.add(match[1], Case(_SHELL_RESULTS[match[2]]))
            self._last_shell = list(self.program.cases)[-1]
            return
        elif line.startswith("\t") and self._last_shell:
            case = self.program.cases[self._last_shell]
            self.program.cases[self._last_shell] = Case(case.result, line.strip()[:_LONGEST])
        elif match := _CHECK.match(line) or _EXCEPTION.match(line):
            self._why = re.sub(r"^[\w.]+\.(?=[A-Z])", "", match[1])[:_LONGEST]
        elif match := _STDERR.match(line):
            self._why = f"{self._why}: {match[1]}"[:_LONGEST]
        elif line.strip("# \t") and not line.startswith("# Totals:"):
            self._last_words = line.lstrip("# ").strip()[:_LONGEST]
        self._last_shell = ""

    def _case(self, failed: bool, rest: str) -> None:
        directive = _DIRECTIVE.search(rest)
        name = (rest[: directive.start()] if directive else rest).strip() or self._stem
        name = name.removeprefix(f"{self._stem}.")
        # A check may fail before the case is skipped.
        if directive and not (failed and self._why):
            result = SKIP if directive[1].upper() == "SKIP" else XFAIL
            case = Case(result, directive[2].strip())
        else:
            case = Case(FAIL, self._why) if failed else Case(PASS)
        self.program.add(name, case)
        self._why = ""

    def end(self, code: int | None, why: str = "") -> Program:
        """The end of the program, or of the guest if there is no code."""
        program = self.program
        program.code = code
        if code == _TIMED_OUT:
            why = "the program took too long and was ended"
        if code is None or code == _TIMED_OUT:
            program.troubles.append(why)
        if code == _SKIPPED and not program.count(PASS, FAIL, XFAIL):
            if not program.cases:
                program.add(self._stem, Case(SKIP, self._skip or self._last_words))
            return program
        why = why or self._why or self._last_words
        planned = self._planned or 0
        if planned > len(program.cases) and not self._skip:
            for number in range(len(program.cases), planned):
                program.add(f"case {number + 1}", Case(FAIL, why))
        elif code != 0 and not program.count(FAIL):
            program.add(self._stem, Case(FAIL, why))
        elif not program.cases:
            # The last line of a program with an empty plan has the reason.
            skip = self._skip or (self._last_words if self._planned == 0 else "")
            program.add(self._stem, Case(SKIP, skip) if skip else Case(FAIL, "it says nothing"))
        return program


def parse(lines: Iterable[str], why: str = "the guest ended") -> list[Program]:
    """The programs of one boot; `why` is the reason of one that has no end."""
    programs: list[Program] = []
    reader: _Reader | None = None
    for raw in lines:
        line = raw.rstrip("\r\n")
        if match := _BEGIN.match(line):
            reader = _Reader(match[1])
        elif (match := _END.match(line)) and reader is not None:
            programs.append(reader.end(int(match[2])))
            reader = None
        elif (match := _LOST.match(line)) and programs:
            programs[-1].trouble("the port works afterwards", match[2])
        elif reader is not None:
            reader.line(line)
    if reader is not None:
        programs.append(reader.end(None, why))
    return programs
