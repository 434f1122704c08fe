# SPDX-License-Identifier: GPL-2.0
"""The kernel's files after each topic of a series, without the series beside it."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from testbed.host.ui import Failure
from testbed.source import listing, maintainers
from testbed.source.patching import Series, as_bytes, as_text, read, read_all, touched_files, weave
from testbed.source.topics import Topic, check, topics

Files = dict[str, bytes | None]


class States:
    """All files of the series with some of its topics."""

    def __init__(self, clone: Path, base: Path, author: str = "") -> None:
        check(clone)
        self.series = {one.name: one for one in read_all(clone / "patches")}
        self.topics = topics(clone)
        self._clone = clone
        self._author = author
        self._weaves = weave(base, [topic.patch for topic in self.topics])
        text = as_text(read(base / maintainers.FILE))
        self._maintainers = None if text is None else maintainers.Listing(text)
        self._files = {name: {file for topic in self.topics if topic.series == name
                              for file in topic.files} for name in self.series}  # fmt: skip
        # The entry of a series has files of those that go on top of it, too.
        self._reach = {name: set[str]().union(*(files for other, files in self._files.items()
                                                if name == other or self._goes_on(other, name)))
                       for name in self.series}  # fmt: skip
        self._entries = {name: maintainers.entry(clone / "patches", name, files)
                         for name, files in self._reach.items()}  # fmt: skip
        self._own = {file: (clone / file).read_bytes() for topic in self.topics
                     for file in topic.files}  # fmt: skip
        self._listed = {file: listing.listed(file, content, self._own)
                        for file, content in self._own.items()}  # fmt: skip
        self._check_rewrites()

    def needs(self, series: str) -> list[Series]:
        """The series that one needs, and those that these need, in order."""
        found: set[str] = set()
        more = [series]
        while more:
            names = self.series[more.pop()].needs
            more += [name for name in names if name not in found]
            found.update(names)
        return [one for one in self.series.values() if one.name in found]

    def _goes_on(self, series: str, below: str) -> bool:
        return any(one.name == below for one in self.needs(series))

    def steps(self, series: str) -> Iterator[tuple[Topic | None, Files]]:
        """All files up to the needs of the series, and then up to each of its topics."""
        needed = {one.name for one in self.needs(series)}
        below = [topic for topic in self.topics if topic.series in needed]
        own = [topic for topic in self.topics if topic.series == series]
        yield None, self.files(below)
        for count, topic in enumerate(own, 1):
            yield topic, self.files([*below, *own[:count]])

    def files(self, some: Sequence[Topic]) -> Files:
        """The files that some topics make, change or remove."""
        names = {topic.name for topic in some}
        there = {file for topic in some for file in topic.files}
        found: Files = {}
        for file in there:
            gone = {module for module, one in self._listed[file].items() if one not in there}
            content = self._own[file]
            found[file] = listing.without(content, gone) if gone else content
        for file in touched_files(topic.patch for topic in some):
            found[file] = self._woven(file, frozenset(names & self._weaves[file].topics))
        if self._maintainers is not None and (entries := self._entries_of(some, there)):
            found[maintainers.FILE] = as_bytes(self._maintainers.with_entries(entries))
        return found

    @cache  # noqa: B019 - it ends with the series
    def _woven(self, file: str, names: frozenset[str]) -> bytes | None:
        return as_bytes(self._weaves[file].content(names))

    def _entries_of(self, some: Sequence[Topic], there: set[str]) -> list[list[str]]:
        found = []
        for name in dict.fromkeys(topic.series for topic in some):
            entry = self._entries[name]
            if entry is not None:
                found.append(entry.of(there & self._reach[name], self._author))
        return [lines for lines in found if lines]

    def _check_rewrites(self) -> None:
        """A topic may only change the lines of those that are surely below it."""
        home = {topic.name: topic.series for topic in self.topics}
        for file, woven in self._weaves.items():
            for topic, other in sorted(woven.rewrites):
                below = {home[topic], *(one.name for one in self.needs(home[topic]))}
                if home[other] not in below:
                    raise Failure(
                        f"{topic} changes lines of {other} in {file}, but its series "
                        f"{home[topic]} does not go on top of {home[other]}",
                        "name that in patches/series, or add lines instead of changing some",
                    )
