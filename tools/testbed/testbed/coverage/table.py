# SPDX-License-Identifier: GPL-2.0
"""The record of a run as text, for RESULTS.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from testbed.coverage.summary import DRIVER, sums

# Files that a row names.
_FILES = 3


def render(content: Mapping[str, Any]) -> str:
    """Two tables, and lists of what nothing enters."""
    lines = ["| part | functions | entered |", "| --- | ---: | ---: |"]
    for part, (entered, every) in sums(content).items():
        lines.append(f"| **{part}** | **{every}** | **{entered}** |")
        lines += [f"| `{folder}` | {row[1]} | {row[0]} |"
                  for folder, row in content["parts"][part].items()]  # fmt: skip
    lines += ["", *_fill("By program: functions entered, and those that no other program of the "
                         "tier enters, with files that they are in.")]  # fmt: skip
    lines += ["", "| program | functions | it alone | in |", "| --- | ---: | ---: | --- |"]
    programs = sorted(content["programs"].items(), key=lambda one: (-one[1]["alone"], one[0]))
    lines += [_row(name, one) for name, one in programs]
    lines += ["", "Files of which no program enters a function:", ""]
    lines += _fill(_listed(content["files"]))
    lines += ["", "Functions of the driver that no program enters:", ""]
    for file, names in content["driver"].items():
        lines += textwrap.wrap(f"- `{file.removeprefix(f'{DRIVER}/')}`: {_listed(names)}", 100,
                               subsequent_indent="  ", break_on_hyphens=False)  # fmt: skip
    return "\n".join(lines) + "\n"


def _row(name: str, one: Mapping[str, Any]) -> str:
    files = [file.rpartition("/")[2] for file in one["files"]]
    more = " ..." if len(files) > _FILES else ""
    when = "" if one["tier"] else " (`ALL=1`)"
    return (f"| {name}{when} | {one['entered']} | {one['alone']} | "
            f"{', '.join(files[:_FILES])}{more} |")  # fmt: skip


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in names) or "none"


def _fill(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_on_hyphens=False)
