# SPDX-License-Identifier: GPL-2.0
"""A file with the changes of many topics: what it is with some of them.

All topics are applied in order. Each line is kept, with the topic that added it and
the one that deleted it, so that the content for a part of the topics is a choice of
lines: no context has to fit.
"""

from collections.abc import Container
from dataclasses import dataclass

from testbed.source.diff import Hunk, Section, split_lines


class Misfit(Exception):
    """A hunk whose context and old lines the file does not have."""


@dataclass(eq=False)
class _Line:
    text: str
    # The topics that added and deleted it; one of upstream's was added by none.
    by: str | None = None
    gone: str | None = None


class Weave:
    """The lines of one file."""

    def __init__(self, text: str | None) -> None:
        self._there = text is not None
        self._lines = [_Line(line) for line in split_lines(text or "")]
        self._removed_by: str | None = None
        self.topics: set[str] = set()
        # Pairs of topics: the first deletes lines that the second added.
        self.rewrites: set[tuple[str, str]] = set()

    def apply(self, section: Section, topic: str) -> None:
        """Add a topic's changes to those of the earlier ones; `Misfit` if they do not fit."""
        if section.makes or not self._there or self._removed_by:
            raise Misfit(f"{section.name} is no file of this kernel tree")
        self.topics.add(topic)
        drift = 0
        for number, hunk in enumerate(section.hunks, 1):
            visible = [line for line in self._lines if line.gone is None]
            place = _find(hunk, [line.text for line in visible], hunk.start - 1 + drift)
            if place is None:
                raise Misfit(f"{section.name}: hunk {number} (at line {hunk.start}) does not fit")
            self._insert(hunk, visible[max(place - 1, 0) :], place > 0, topic)
            drift = place - hunk.start + 1 + sum(_GROWTH[line[0]] for line in hunk.lines)
        if section.removes:
            self._removed_by = topic

    def _insert(self, hunk: Hunk, visible: list[_Line], behind: bool, topic: str) -> None:
        following = iter(visible)
        # The index behind the line that was passed last.
        cursor = self._lines.index(next(following)) + 1 if behind else 0
        for line in hunk.lines:
            if line[0] == "+":
                self._lines.insert(cursor, _Line(line[1:], topic))
                cursor += 1
                continue
            passed = next(following)
            cursor = self._lines.index(passed) + 1
            if line[0] == "-":
                passed.gone = topic
                if passed.by is not None and passed.by != topic:
                    self.rewrites.add((topic, passed.by))

    def content(self, topics: Container[str] | None = None) -> str | None:
        """The file with these topics, or all; None if it does not exist."""

        def has(topic: str | None) -> bool:
            return topic is not None and (topics is None or topic in topics)

        if not self._there or has(self._removed_by):
            return None
        return "".join(
            line.text for line in self._lines
            if (line.by is None or has(line.by)) and not has(line.gone)
        )  # fmt: skip


# Lines that a line of a hunk adds to the file.
_GROWTH = {" ": 0, "+": 1, "-": -1}


def _find(hunk: Hunk, lines: list[str], near: int) -> int | None:
    """Where the hunk's old lines are, as near as possible to where it says."""
    old = hunk.old
    if not old:
        # Behind that line, not at it.
        return min(max(near + 1, 0), len(lines))
    fits = [at for at in range(len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
    return min(fits, key=lambda at: abs(at - near)) if fits else None
