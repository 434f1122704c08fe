# SPDX-License-Identifier: GPL-2.0
"""Reads patches/series and applies the patches, without fuzz."""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from testbed.host.ui import Failure
from testbed.source.diff import Section, parse
from testbed.source.weave import Misfit, Weave

_HEAD = re.compile(r"\[([\w-]+)\](?: for ([\w-]+))?(?: after (.+))?")


@dataclass(frozen=True)
class Patch:
    """One entry of patches/series."""

    path: Path
    text: str
    # The series that it is part of.
    series: str = ""

    @property
    def subject(self) -> str:
        """The first line of its message."""
        return self._message[0]

    @property
    def body(self) -> str:
        """The rest of its message."""
        return self._message[1].strip()

    @property
    def _message(self) -> tuple[str, str]:
        subject, _, body = self.text.partition("\n---\n")[0].partition("\n\n")
        return subject.partition("Subject:")[2].replace("[PATCH]", "").strip(), body

    @property
    def name(self) -> str:
        """The name of its file without the ending."""
        return self.path.stem

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The files that it changes, in its order."""
        return tuple(parse(self.text.partition("\n---\n")[2]))


@dataclass(frozen=True)
class Series:
    """One series of mails: its name, those that it needs, its patches."""

    name: str
    needs: list[str]
    # The tree that it is sent to, which its subjects name.
    tree: str = ""
    patches: list[Patch] = field(default_factory=list)


def read_all(folder: Path) -> list[Series]:
    """The series that patches/series lists, in order."""
    path = folder / "series"
    found: list[Series] = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        name = line.split("#")[0].strip()
        if not name:
            continue
        if head := _HEAD.fullmatch(name):
            needs = (head[3] or "").replace(",", " ").split()
            if unknown := [one for one in needs if one not in [series.name for series in found]]:
                raise Failure(f"{path} line {number}: {head[1]} needs {unknown[0]}, "
                              "which is not a series above it")  # fmt: skip
            found.append(Series(head[1], needs, head[2] or ""))
            continue
        if not found:
            raise Failure(f"{path} line {number}: {name} stands above the first [series]")
        if not (folder / name).is_file():
            raise Failure(
                f"{path} line {number} lists {name}, which does not exist",
                f"add {folder / name} or take the line out",
            )
        found[-1].patches.append(Patch(folder / name, (folder / name).read_text(), found[-1].name))
    return found


def read_series(folder: Path) -> list[Patch]:
    """The patches of all series, in order."""
    return [patch for series in read_all(folder) for patch in series.patches]


def touched_files(patches: Iterable[Patch]) -> list[str]:
    """The files that some patches change, in their order."""
    return list(dict.fromkeys(one.name for patch in patches for one in patch.sections))


def read(path: Path) -> bytes | None:
    """The content of a file; None if it does not exist."""
    return path.read_bytes() if path.is_file() else None


def write(path: Path, content: bytes) -> None:
    """Create or replace a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def copy_files(base: Path, folder: Path, names: Iterable[str]) -> None:
    """Copy some files, as far as they exist in a tree."""
    for name in names:
        if (content := read(base / name)) is not None:
            write(folder / name, content)


def weave(base: Path, patches: Iterable[Patch], own: Container[str] = ()) -> dict[str, Weave]:
    """The upstream files that patches change; what they say of the clone's `own` is left out."""
    found: dict[str, Weave] = {}
    for patch in patches:
        for section in (one for one in patch.sections if one.name not in own):
            file = found.get(section.name)
            if file is None:
                file = found[section.name] = Weave(as_text(read(base / section.name)))
            try:
                file.apply(section, patch.name)
            except Misfit as misfit:
                raise Failure(
                    f"patch {patch.path.name} does not apply to this kernel tree",
                    str(misfit),
                    "the tree was left as it was; OVERLAY=0 builds it without the series",
                ) from None
    return found


def as_text(content: bytes | None) -> str | None:
    """A file's content as text, which `as_bytes` turns back in any case."""
    return None if content is None else content.decode(errors="surrogateescape")


def as_bytes(text: str | None) -> bytes | None:
    """The reverse of `as_text`."""
    return None if text is None else text.encode(errors="surrogateescape")
