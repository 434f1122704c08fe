# SPDX-License-Identifier: GPL-2.0
"""The topics of the series: each is one patch with the new files that go with it."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from pathlib import Path

from testbed.host.ui import Failure
from testbed.source import overlay
from testbed.source.patching import Patch, read_series


@dataclass(frozen=True)
class Topic:
    """One mail of the series: a patch and the new files that come with it."""

    patch: Patch
    files: tuple[str, ...]

    @property
    def series(self) -> str:
        """The series that it is part of."""
        return self.patch.series

    @property
    def name(self) -> str:
        """The name of the patch without its ending."""
        return self.patch.path.stem


def _patterns(patch: Patch) -> list[str]:
    listing = patch.path.with_suffix(".files")
    if not listing.exists():
        return []
    lines = (line.split("#")[0].strip() for line in listing.read_text().splitlines())
    return [line for line in lines if line]


def topics(clone: Path) -> list[Topic]:
    """Sort the clone's new files into the topics of the series."""
    series = read_series(clone / "patches")
    if not series:
        raise Failure("patches/series lists no patch: there is no series to write")
    rules = {patch.path.name: _patterns(patch) for patch in series}
    used: set[tuple[str, str]] = set()
    members: dict[str, list[str]] = {name: [] for name in rules}
    homeless, twice = [], []
    for file in overlay.new_files(clone):
        homes = []
        for name, patterns in rules.items():
            hits = [one for one in patterns if fnmatch.fnmatchcase(file, one)]
            used.update((name, one) for one in hits)
            if hits:
                homes.append(name)
        if not homes:
            homeless.append(file)
        elif len(homes) > 1:
            twice.append(f"{file}: {', '.join(homes)}")
        else:
            members[homes[0]].append(file)
    if homeless:
        raise Failure(
            "these new files belong to no topic:",
            *homeless,
            "add them to the .files list next to the patch that they go with",
        )
    if twice:
        raise Failure("these new files belong to more than one topic:", *twice)
    stale = [
        f"{name}: {one}" for name, ones in rules.items() for one in ones if (name, one) not in used
    ]
    if stale:
        raise Failure("these lines of .files lists match no file:", *stale)
    return [Topic(patch, tuple(members[patch.path.name])) for patch in series]
