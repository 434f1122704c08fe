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
from testbed.host.ui import Failure

# The width of a message.
WIDTH = 75
# C code in braces has no slash but in comments.
_PLACE = re.compile(r"\{([^{}*]*/[^{}*]*)\}")
# Keeps a number and its unit in one line.
_TIE = "\u00a0"
_FORMAT = re.compile(r" *: *(?=\d*,?\.\d+f$)")


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
        path, *form = _FORMAT.split(" ".join(place.split()))
        try:
            value, unit = self._value([part.strip() for part in path.split("/")])
            return format(value, form[0]) if form else _text(value, unit)
        except (KeyError, TypeError, ValueError) as error:
            raise Failure(
                f"{file}: {{{place}}} is in no record: {error!r}",
                f"the records are in {record.FOLDER}; patches/README explains such places",
            ) from None

    def _value(self, path: list[str]) -> tuple[Any, str]:
        """The value at a path, and its unit."""
        name, *rest = path
        value: Any = self._records[name]
        if rest == ["conditions"]:
            return _conditions(record.Circumstances.of(value)), ""
        if "rows" in value and len(rest) == 3:
            rows = {(row["bench"], row["case"]): row for row in value["rows"]}
            row = rows[rest[0], rest[1]]
            if rest[2] == "spread":
                return f"{row['ratio_min']:.2f} to {row['ratio_max']:.2f}", ""
            return row[rest[2]], "" if rest[2] == "ratio" else row["unit"]
        for part in rest:
            value = value[part]
        return value, ""


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
