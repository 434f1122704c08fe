# SPDX-License-Identifier: GPL-2.0
"""The topics of the series: each is one patch with the new files that go with it."""

import fnmatch
import re
from collections.abc import Sequence
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
        return self.patch.name


def _patterns(patch: Patch) -> list[str]:
    listing = patch.path.with_suffix(".files")
    if not listing.exists():
        return []
    lines = (line.split("#")[0].strip() for line in listing.read_text().splitlines())
    return list(filter(None, lines))


def _homes(clone: Path, patches: Sequence[Patch]) -> dict[str, list[str]]:
    """The names of the topics that list each of the clone's new files."""
    homes: dict[str, list[str]] = {file: [] for file in overlay.new_files(clone)}
    for patch in patches:
        patterns = [re.compile(fnmatch.translate(one)) for one in _patterns(patch)]
        for file, names in homes.items():
            if any(one.match(file) for one in patterns):
                names.append(patch.name)
    return homes


def topics(clone: Path) -> list[Topic]:
    """Sort the clone's new files into the topics of the series, as far as these list them."""
    patches = read_series(clone / "patches")
    homes = _homes(clone, patches)
    return [Topic(patch, tuple(file for file, names in homes.items() if patch.name in names[:1]))
            for patch in patches]  # fmt: skip


def check(clone: Path) -> None:
    """Refuse to write a series that would not be the clone. Building does not need this."""
    patches = read_series(clone / "patches")
    if not patches:
        raise Failure("patches/series lists no patch: there is no series to write")
    homes = _homes(clone, patches)
    if homeless := [file for file, names in homes.items() if not names]:
        raise Failure(
            "these new files belong to no topic:",
            *homeless,
            "add them to the .files list next to the patch that they go with",
        )
    if twice := [f"{file}: {', '.join(names)}" for file, names in homes.items() if names[1:]]:
        raise Failure("these new files belong to more than one topic:", *twice)
    if stale := [f"{patch.path.name}: {one}" for patch in patches for one in _patterns(patch)
                 if not fnmatch.filter(homes, one)]:  # fmt: skip
        raise Failure("these lines of .files lists match no file:", *stale)
    own = [f"{patch.path.name}: {one.name}" for patch in patches for one in patch.sections
           if one.name in homes]  # fmt: skip
    if own:
        raise Failure("these patches change files of the clone itself:", *own,
                      "take the parts out: such files are kept as they are in the end")  # fmt: skip
