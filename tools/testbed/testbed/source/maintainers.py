# SPDX-License-Identifier: GPL-2.0
"""Entries of MAINTAINERS, which grow with the files of a series and of those on top of it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.host.ui import Failure

FILE = "MAINTAINERS"


def matches(pattern: str, file: str) -> bool:
    """Whether a line F: with this pattern is about a file, as in get_maintainer.pl."""
    # There are thousands of patterns: few begin like the file.
    if not file.startswith(re.split(r"[*?]", pattern, maxsplit=1)[0]):
        return False
    if pattern.endswith("/"):
        return file.startswith(pattern)
    glob = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    # A pattern without a slash at its end does not match files in folders below.
    return bool(re.match(glob, file)) and file.count("/") == pattern.count("/")


@dataclass(frozen=True)
class Entry:
    """The entry of one series: its title, other lines, and the patterns of its files."""

    title: str
    lines: tuple[str, ...]
    patterns: tuple[str, ...]

    def of(self, files: Collection[str], author: str) -> list[str]:
        """The entry's lines while only some of its files are there; none without any."""
        there = [one for one in self.patterns if any(matches(one, file) for file in files)]
        if not there:
            return []
        # Only a person maintains.
        lines = [line if author else line.replace("S:\tMaintained", "S:\tOrphan")
                 for line in self.lines]  # fmt: skip
        person = [f"M:\t{author}"] if author else []
        return [self.title, *person, *lines, *(f"F:\t{one}" for one in there)]


def entry(folder: Path, series: str, files: Collection[str]) -> Entry | None:
    """The entry in patches/SERIES.maintainers, if any; `files` are all that it may have."""
    path = folder / f"{series}.maintainers"
    if not path.exists():
        return None
    title, *lines = path.read_text().strip().splitlines()
    patterns = [line[3:] for line in lines if line.startswith("F:\t")]
    if gone := [one for one in patterns if not any(matches(one, file) for file in files)]:
        raise Failure(
            f"{path.name}: no file of the series {series} is {gone[0]}",
            "take the line out, or correct it: a folder ends in /, and * matches none below",
        )
    return Entry(title, tuple(line for line in lines if line[:3] != "F:\t"), tuple(patterns))


class Listing:
    """The text of MAINTAINERS, in alphabetical order behind an explanation of it."""

    def __init__(self, text: str) -> None:
        self._blocks = text.rstrip("\n").split("\n\n")
        self._titles = [(i, block.partition("\n")[0].upper())
                        for i, block in enumerate(self._blocks)
                        if re.match(r"\S.*\n[A-Z]:\t", block)]  # fmt: skip

    def with_entries(self, entries: Sequence[Sequence[str]]) -> str:
        """Insert entries, each a list of lines."""
        blocks = list(self._blocks)
        # From the last one: the places of the others stay.
        for lines in sorted(entries, key=lambda one: one[0].upper(), reverse=True):
            blocks.insert(self._place(lines[0].upper()), "\n".join(lines))
        return "\n\n".join(blocks) + "\n"

    def _place(self, title: str) -> int:
        """The place with the fewest entries out of order: a few of upstream's are."""
        place = self._titles[0][0] if self._titles else len(self._blocks)
        wrong = fewest = 0
        for i, one in self._titles:
            # "THE REST" is always the last one.
            wrong += 1 if one > title or one == "THE REST" else -1
            if wrong <= fewest:
                fewest, place = wrong, i + 1
        return place
