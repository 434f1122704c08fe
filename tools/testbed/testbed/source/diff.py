# SPDX-License-Identifier: GPL-2.0
"""Unified diffs: the files that they change, hunk by hunk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_FILE = "/dev/null"


@dataclass(frozen=True)
class Hunk:
    """One place that changes: where it is in the old file, and lines behind " ", "-", "+"."""

    start: int
    lines: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        """The lines that have to be there."""
        return [line[1:] for line in self.lines if line[0] != "+"]


@dataclass(frozen=True)
class Section:
    """The changes of one file."""

    name: str
    hunks: tuple[Hunk, ...]
    makes: bool = False
    removes: bool = False


def split_lines(text: str) -> list[str]:
    """Lines with their ends: of no other separator than a line feed."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def parse(text: str) -> list[Section]:
    """The sections of a diff, in its order; text between them is skipped."""
    lines = iter(split_lines(text))
    found: list[Section] = []
    before = ""
    for line in lines:
        if line.startswith("--- "):
            before = _path(line)
        elif line.startswith("+++ ") and before:
            after = _path(line)
            name = before if after == _NO_FILE else after
            found.append(Section(name, (), before == _NO_FILE, after == _NO_FILE))
        elif head := _HUNK.match(line):
            one = found[-1]
            hunk = _hunk(lines, *(int(number or 1) for number in head.groups()))
            found[-1] = Section(one.name, (*one.hunks, hunk), one.makes, one.removes)
    return found


def _path(line: str) -> str:
    path = line[4:].split()[0] if line[4:].strip() else ""
    return path if path == _NO_FILE else re.sub(r"^[ab]/", "", path)


def _hunk(lines: Iterator[str], start: int, old: int, new: int) -> Hunk:
    taken: list[str] = []
    while old > 0 or new > 0:
        line = next(lines, "")
        if line.startswith("\\"):
            taken[-1] = taken[-1].rstrip("\n")
            continue
        # Mail programs and editors strip the blank of an empty line of context.
        line = f" {line}" if line in ("\n", "") else line
        old -= line[0] != "+"
        new -= line[0] != "-"
        taken.append(line)
    return Hunk(start, tuple(taken))
