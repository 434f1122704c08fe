# SPDX-License-Identifier: GPL-2.0
"""Figures in messages, filled in from the records of make bench and make demo.

A place for one is {RECORD / PATH}, or {RECORD / PATH : FORMAT} for the number alone;
patches/README explains it.
"""

import re
import textwrap
from pathlib import Path
from typing import Any

from testbed.bench import record
from testbed.host.ui import Failure, similar

# The width of a message.
WIDTH = 75
# C code in braces has no slash but in comments.
_PLACE = re.compile(r"\{([^{}*]*/[^{}*]*)\}")
# Keeps a number and its unit in one line.
_TIE = "\u00a0"
_FORMAT = re.compile(r"(?P<path>.*?) *: *(?P<format>\d*,?\.\d+f)")
# A row has these; "spread" is made of two.
_COLUMNS = ("ours", "reference", "ratio", "spread")


class Unknown(Exception):
    """A part of a path that the records do not have, and those that they have."""


class Figures:
    """The records of a clone."""

    def __init__(self, clone: Path) -> None:
        self._records = record.load(clone)

    def fill(self, text: str, file: str) -> str:
        """The text with its figures; `file` is named if one of them is unknown."""
        parts = re.split(r"(\n{2,})", text)
        return "".join(self._paragraph(part, file) for part in parts)

    def _paragraph(self, text: str, file: str) -> str:
        filled = _PLACE.sub(lambda found: self._figure(found[1], file), text)
        # Figures have other lengths than their places; tables stay as they are.
        if filled == text or re.search(r"^[ \t]", text, re.M):
            return filled.replace(_TIE, " ")
        line = re.sub("[ \n]+", " ", filled).strip()
        lines = textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
        return "\n".join(lines).replace(_TIE, " ")

    def _figure(self, place: str, file: str) -> str:
        place = " ".join(place.split())
        found = _FORMAT.fullmatch(place)
        path = [part.strip() for part in (found["path"] if found else place).split("/")]
        try:
            value, unit = self._value(path)
        except Unknown as error:
            part, known = error.args
            raise Failure(
                f"{file}: {{{place}}} is in no record: there is no {part}",
                *similar(part, known),
                f"there are {', '.join(dict.fromkeys(known))}",
                f"the records are in {record.FOLDER}; patches/README explains such places",
            ) from None
        if not isinstance(value, str) and found:
            return format(value, found["format"])
        return _text(value, unit)

    def _value(self, path: list[str]) -> tuple[float | str, str]:
        """The value at a path, and its unit."""
        name, *rest = path
        content = _part(self._records, name)
        if rest == ["conditions"]:
            return _conditions(record.Circumstances.of(content)), ""
        if "rows" in content and len(rest) == 3:
            return _cell(content, *rest)
        value: Any = content
        for part in rest:
            value = _part(value if isinstance(value, dict) else {}, part)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            known = value if isinstance(value, dict) else ["conditions"]
            raise Unknown(f"number at {' / '.join(path)}", known)
        return value, ""


def _part(known: dict[str, Any], name: str) -> Any:
    if name not in known:
        raise Unknown(name, known)
    return known[name]


def _cell(content: record.Content, table: str, case: str, column: str) -> tuple[float | str, str]:
    """A cell of a table that make bench has recorded, and its unit."""
    rows = content["rows"]
    in_table = {row["case"]: row for row in rows if row["bench"] == table}
    if not in_table:
        raise Unknown(table, [row["bench"] for row in rows])
    row = _part(in_table, case)
    known = [one for one in _COLUMNS if row["ratio" if one == "spread" else one] is not None]
    if column not in known:
        raise Unknown(column, known)
    if column == "spread":
        return f"{row['ratio_min']:.2f} to {row['ratio_max']:.2f}", ""
    if column == "ratio":
        return f"{row['ratio']:.2f}", ""
    return row[column], row["unit"]


def _conditions(one: record.Circumstances) -> str:
    """The circumstances in brief."""
    kernel = f"Linux {one.kernel}, " if one.kernel else ""
    cpu = one.cpu.replace("(R)", "")
    return f"{kernel}{one.processors} processors of {cpu}, {one.date}"


def _text(value: float | str, unit: str) -> str:
    """Three digits, as far as there are so many before the point, and the unit."""
    if isinstance(value, str):
        return value
    digits = 0 if isinstance(value, int) else (abs(value) < 10) + (abs(value) < 100)
    number = f"{value:,.{digits}f}"
    return f"{number}{_TIE}{unit}" if unit else number
