# SPDX-License-Identifier: GPL-2.0
"""Reads patches/series and works out what the patched files look like."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testbed.ui import Failure

_TARGET = re.compile(r"^(---|\+\+\+) (?:[ab]/)?(\S+)", re.M)
_FILE_LINE = re.compile(r"^(?:checking|patching) file '?([^'\n]+?)'?$")
_HUNK_LINE = re.compile(r"^Hunk #(\d+) FAILED at (\d+)")


@dataclass(frozen=True)
class Patch:
    """One entry of patches/series."""

    path: Path
    text: str

    @property
    def touched(self) -> list[str]:
        """The files it changes, makes or removes, in its order."""
        names = [name for _, name in _TARGET.findall(self.text) if name != "/dev/null"]
        return list(dict.fromkeys(names))


def read_series(folder: Path) -> list[Patch]:
    """The patches that patches/series lists, in order."""
    series = folder / "series"
    if not series.exists():
        return []
    patches = []
    for number, line in enumerate(series.read_text().splitlines(), 1):
        name = line.split("#")[0].strip()
        if not name:
            continue
        path = folder / name
        if not path.is_file():
            raise Failure(
                f"{series} line {number} lists {name}, which does not exist",
                f"add {path} or take the line out",
            )
        patches.append(Patch(path, path.read_text()))
    return patches


def _explain(patch: Patch, text: str) -> Failure:
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
    )


def patched_files(base: Path, patches: list[Patch]) -> dict[str, bytes | None]:
    """Apply all patches to copies; returns what each touched file becomes.

    None stands for a file that a patch removes.
    """
    touched = list(dict.fromkeys(name for patch in patches for name in patch.touched))
    with tempfile.TemporaryDirectory(prefix="skbulk-patch-") as name:
        scratch = Path(name)
        for file in touched:
            source = base / file
            if source.is_file():
                target = scratch / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
        for patch in patches:
            if not patch.touched:
                # A topic of new files alone: a mail's header, nothing to apply.
                continue
            # -F0: a hunk whose surroundings changed is not guessed at.
            done = subprocess.run(
                ["patch", "-p1", "-F0", "-f", "--no-backup-if-mismatch", "-r", "-",
                 "-d", str(scratch), "-i", str(patch.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )  # fmt: skip
            if done.returncode != 0:
                raise _explain(patch, done.stdout.decode(errors="replace"))
        result: dict[str, bytes | None] = {}
        for file in touched:
            target = scratch / file
            result[file] = target.read_bytes() if target.is_file() else None
    return result
