# SPDX-License-Identifier: GPL-2.0
"""Tables in text files: columns apart by blanks, of which the last one is the rest of the line."""

from __future__ import annotations

from pathlib import Path


def rows(path: Path, columns: int) -> list[list[str]]:
    """The rows of a table, without comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split(maxsplit=columns - 1) for line in lines if line and line[0] != "#"]
