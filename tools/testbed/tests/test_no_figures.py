# SPDX-License-Identifier: GPL-2.0
"""RESULTS.md is the one source of figures: no other document holds a measured number."""

from __future__ import annotations

import re
import unittest
from collections.abc import Iterator
from pathlib import Path

CLONE = Path(__file__).parents[3]
# A number and the unit of a measurement.
FIGURE = re.compile(
    r"(?<![\w.])\d[\d.,]*(?: to [\d.,]+)?[ -]?"
    r"(?:ns|nanoseconds|[kMG]pps|pps|packets per second|packets/s|instructions|cycles|%|"
    r"per ?cent|million packets)(?!\w)"
    # Ratios in words or digits.
    r"|\b(?:slower|faster|cheaper|dearer) by (?:a |one )?(?:half|third|quarter|tenth|\d)"
    r"|(?:\b\d[\d.]*|half|twice) (?:times )?as (?:fast|slow)\b"
    r"|\b\d[\d.]* times (?:faster|slower)\b",
    re.I,
)
# A line of a table with two numbers that have a fraction: a table of figures.
TABLE = re.compile(r"^\W*\S.*?\d+\.\d+.*\s\d+\.\d+")
# Not measured here: rates that others published, the step of User-Mode Linux's clock.
ALLOWED = (
    "16 million packets per second before and 29 after",
    "256 ns",
)
GENERATED = re.compile(r"<!-- recorded: (\w+) -->\n.*?<!-- end of recorded -->\n", re.S)
RUST_COMMENT = re.compile(r"^\s*//[!/](.*)$", re.M)


def documents() -> Iterator[tuple[str, str]]:
    """Name and text of every document that must not contain a figure."""
    for pattern in ("README.md", "Documentation/**/*.rst", "tools/**/*.md", "patches/README"):
        for path in sorted(CLONE.glob(pattern)):
            if "target" not in path.parts:
                name = str(path.relative_to(CLONE))
                yield name, GENERATED.sub("", path.read_text())
    for top in ("rust", "drivers", "samples", "net"):
        for path in sorted((CLONE / top).rglob("*.rs")):
            yield str(path.relative_to(CLONE)), "\n".join(RUST_COMMENT.findall(path.read_text()))


def figures(name: str, text: str) -> list[str]:
    """Lines of a document with a figure that is not allowed there."""
    for known in ALLOWED:
        text = text.replace(known, "")
    tables = name.endswith((".md", ".rst"))
    return [f"{name}: {line.strip()}" for line in text.splitlines()
            if FIGURE.search(line) or (tables and TABLE.search(line))]  # fmt: skip


class NoFigures(unittest.TestCase):
    """One source of figures."""

    def test_no_document_holds_a_measured_number(self) -> None:
        found = [line for name, text in documents() for line in figures(name, text)]
        self.assertEqual(found, [], "measured numbers belong into RESULTS.md: see record/results")

    def test_what_is_allowed_is_there(self) -> None:
        everything = "\n".join(text for _, text in documents())
        for known in ALLOWED:
            self.assertIn(known, everything, "take it off the list")

    def test_figures_are_found(self) -> None:
        for line in (
            "a packet took 48.1 ns at best",
            "it is 3 % faster",
            "92 to 130 ns",
            "forwards 838 kpps",
            "2,016 instructions",
            "batch 1  13.0  38.0  3.40",
            "Slower by half",
            "it is twice as fast",
            "2.5 times faster than C",
        ):
            self.assertTrue(figures("x.md", line), line)

    def test_constants_are_left_alone(self) -> None:
        for line in (
            "512 descriptors each way",
            "10 Gb/s",
            "Linux 7.3.4",
            "in units of 2 µs",
            "twice as many after each doorbell",
            "as fast as the other",
            "buffers of 3 KiB",
            "Debian 12 or 13",
        ):
            self.assertEqual(figures("x.md", line), [], line)
