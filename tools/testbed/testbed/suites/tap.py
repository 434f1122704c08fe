# SPDX-License-Identifier: GPL-2.0
"""Reads the output of guest/run-tests: TAP lines between begin and end marks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from testbed.suites.report import Report

_RESULT = re.compile(r"^(ok|not ok)\b(?:\s+\d+)?\s*(?:-\s*)?(.*)$")
_SKIP = re.compile(r"#\s*SKIP\b\s*(.*)$", re.I)
_BEGIN = re.compile(r"^# begin (\S+)$")
_END = re.compile(r"^# end (\S+) (\d+)$")


@dataclass
class Script:
    """One test script's results."""

    name: str
    code: int | None = None
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Take one line of the script's output."""
        found = _RESULT.match(line)
        if not found:
            return
        text = found[2].strip()
        if found[1] == "not ok":
            self.failed.append(text)
        elif skip := _SKIP.search(text):
            self.skipped.append(f"{text[: skip.start()].strip()} ({skip[1]})")
        else:
            self.passed.append(text)


def parse(text: str) -> list[Script]:
    """The scripts that ran, in order; the last may have no end."""
    scripts: list[Script] = []
    running: Script | None = None
    for line in text.splitlines():
        if begin := _BEGIN.match(line):
            running = Script(begin[1])
            scripts.append(running)
        elif (end := _END.match(line)) and running is not None:
            running.code = int(end[2])
            running = None
        elif running is not None:
            running.take(line)
    return scripts


def judge(script: Script, report: Report, why_no_end: str = "it did not end") -> None:
    """Count a script's tests. One without any TAP line is one test itself."""
    for name in script.passed:
        report.add(name)
    for name in script.failed:
        report.add(name, "")
    for name in script.skipped:
        report.skip(script.name, name)
    if script.code is None:
        report.add(script.name, why_no_end)
    elif script.code != 0 and not script.failed:
        report.add(script.name, f"it failed with exit code {script.code}")
    elif not (script.passed or script.failed or script.skipped):
        report.add(script.name)
