# SPDX-License-Identifier: GPL-2.0
"""Finds every kernel complaint in a console log."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

# The first match counts.
_COMPLAINTS = tomllib.loads(Path(__file__).with_name("complaints.toml").read_text(encoding="utf-8"))
_PATTERNS = tuple((kind, re.compile("|".join(some))) for kind, some in _COMPLAINTS.items())
_STAMP = re.compile(r"^\[ *\d+\.\d+\](\[ *[CT]\d+\])? ?")
# Output of fault injection that a test asked for, with a trace.
_INJECTED = re.compile(r"FAULT_INJECTION: forcing a failure")
# The guest's init puts these around warnings that it provokes before any test.
_PAUSE = "skbulk: complaints do not count"
_RESUME = "skbulk: complaints count again"
# A call trace belongs to the complaint above it: not a second one.
_TRACE_REACH = 120


@dataclass(frozen=True)
class Complaint:
    """One complaint: its kind, and the line."""

    kind: str
    line: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.line}"


def unstamped(text: str) -> list[str]:
    """The lines of a console without their time stamps."""
    return [_STAMP.sub("", line.rstrip("\r")) for line in text.split("\n")]


def complaints(text: str, ignore: tuple[str, ...] = ()) -> list[Complaint]:
    """Every complaint in the text of a console, in order.

    `ignore` holds kinds that a test provokes on purpose, for example "out of
    memory" under fault injection. Any other complaint still counts.
    """
    found: list[Complaint] = []
    last = -_TRACE_REACH
    skipped = -_TRACE_REACH
    counting = True
    for number, line in enumerate(unstamped(text)):
        if _PAUSE in line or _RESUME in line:
            counting = _RESUME in line
        if not counting:
            continue
        if _INJECTED.search(line):
            skipped = number
            continue
        kind = next((kind for kind, pattern in _PATTERNS if pattern.search(line)), None)
        if kind is None:
            continue
        if kind == "call trace" and number - max(last, skipped) < _TRACE_REACH:
            continue
        if kind in ignore:
            skipped = number
            continue
        last = number
        found.append(Complaint(kind, line.strip()))
    return found
