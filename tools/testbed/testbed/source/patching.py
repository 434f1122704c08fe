# SPDX-License-Identifier: GPL-2.0
"""Reads patches/series and computes the contents of the patched files."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.host import proc
from testbed.host.ui import Failure

_HEAD = re.compile(r"\[([\w-]+)\](?: after (.+))?")
_TARGET = re.compile(r"^(---|\+\+\+) (?:[ab]/)?(\S+)", re.M)
_FILE_LINE = re.compile(r"^(?:checking|patching) file '?([^'\n]+?)'?$")
_HUNK_LINE = re.compile(r"^Hunk #(\d+) FAILED at (\d+)")


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
    def touched(self) -> list[str]:
        """The files it changes, creates or removes, in its order."""
        names = [name for _, name in _TARGET.findall(self.text) if name != "/dev/null"]
        return list(dict.fromkeys(names))

    def section(self, name: str) -> str:
        """The part of it that changes one file."""
        diff = self.text.partition("\n---\n")[2]
        parts = re.split(r"^(?=diff --git )", diff, flags=re.M)
        return "".join(part for part in parts if f" b/{name}\n" in part.partition("@@")[0])


@dataclass(frozen=True)
class Series:
    """One series of mails: its name, those that it needs, its patches."""

    name: str
    needs: tuple[str, ...]
    patches: tuple[Patch, ...]


def read_all(folder: Path) -> list[Series]:
    """The series that patches/series lists, in order."""
    path = folder / "series"
    found: list[tuple[str, tuple[str, ...], list[Patch]]] = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        name = line.split("#")[0].strip()
        if not name:
            continue
        if head := _HEAD.fullmatch(name):
            needs = tuple((head[2] or "").replace(",", " ").split())
            unknown = [one for one in needs if one not in [series for series, _, _ in found]]
            if unknown:
                raise Failure(f"{path} line {number}: {head[1]} needs {unknown[0]}, "
                              "which is not a series above it")  # fmt: skip
            found.append((head[1], needs, []))
            continue
        if not found:
            raise Failure(f"{path} line {number}: {name} stands above the first [series]")
        if not (folder / name).is_file():
            raise Failure(
                f"{path} line {number} lists {name}, which does not exist",
                f"add {folder / name} or take the line out",
            )
        found[-1][2].append(Patch(folder / name, (folder / name).read_text(), found[-1][0]))
    return [Series(name, needs, tuple(patches)) for name, needs, patches in found]


def read_series(folder: Path) -> list[Patch]:
    """The patches of all series, in order."""
    return [patch for series in read_all(folder) for patch in series.patches]


def touched_files(patches: Iterable[Patch]) -> list[str]:
    """The files that some patches change, create or remove, in their order."""
    return list(dict.fromkeys(name for patch in patches for name in patch.touched))


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


def first_states(clone: Path, patches: list[Patch], new: Collection[str]) -> dict[str, bytes]:
    """The contents of new files before patches of later topics change them.

    The clone has their last state: those patches are reverted.
    """
    result = {}
    for name in (name for name in touched_files(patches) if name in new):
        with tempfile.TemporaryDirectory(prefix="skbulk-state-") as folder:
            file, diff = Path(folder) / name, Path(folder) / "section.patch"
            write(file, (clone / name).read_bytes())
            for patch in reversed(patches):
                if name in patch.touched:
                    diff.write_text(patch.section(name))
                    apply_patch(Path(folder), Patch(diff, ""), f"it is part of {patch.path.name}",
                                reverse=True)  # fmt: skip
            result[name] = file.read_bytes()
    return result


def _explain(patch: Patch, text: str, way_out: str) -> Failure:
    """Turn the tool's output into the patch, the file and the hunk."""
    current = "a file"
    where = []
    for line in text.splitlines():
        if found := _FILE_LINE.match(line):
            current = found[1]
        elif found := _HUNK_LINE.match(line):
            where.append(f"{current}: hunk {found[1]} (at line {found[2]}) does not fit")
    return Failure(
        f"patch {patch.path.name} does not apply to this kernel tree",
        *(where or text.strip().splitlines()[-4:]),
        "the tree was left as it was",
        way_out,
    )


def _patch(folder: Path, patch: Patch, *words: str) -> subprocess.CompletedProcess[str]:
    # -F0: no fuzz for a hunk with changed context.
    return proc.capture(["patch", "-p1", "-F0", "-f", "--no-backup-if-mismatch", "-r", "-", *words,
                         "-d", folder, "-i", patch.path])  # fmt: skip


def applies(folder: Path, patch: Patch, reverse: bool = False) -> bool:
    """Whether a patch can be applied, or reverted."""
    words = ("-R", "--dry-run") if reverse else ("--dry-run",)
    return _patch(folder, patch, *words).returncode == 0


def apply_patch(folder: Path, patch: Patch, way_out: str = "", reverse: bool = False) -> None:
    """Apply or revert a patch; the `Failure` names the place that does not fit."""
    done = _patch(folder, patch, *(["-R"] if reverse else []))
    if done.returncode != 0:
        raise _explain(patch, done.stdout, way_out)


def patched_files(
    base: Path, patches: list[Patch], new: Mapping[str, bytes]
) -> dict[str, bytes | None]:
    """Apply all patches to copies; returns the contents of the touched files, None for a
    removed one. `new` are files that the tree lacks, before a patch changes them.
    """
    touched = touched_files(patches)
    with tempfile.TemporaryDirectory(prefix="skbulk-patch-") as name:
        scratch = Path(name)
        copy_files(base, scratch, touched)
        for file in new.keys() & set(touched):
            write(scratch / file, new[file])
        for patch in patches:
            # A topic of new files alone is just a mail's header.
            if patch.touched:
                apply_patch(scratch, patch)
        return {file: read(scratch / file) for file in touched}
