# SPDX-License-Identifier: GPL-2.0
"""Plain roots: the instructions of a Containerfile."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.host import plain

CLONE = Path(__file__).resolve().parents[4]


def test_lines_that_go_on_are_one_instruction() -> None:
    text = "# a\nFROM x\n\nRUN a && \\\n\tb \\\n\t\tc\nCMD d\n"
    assert plain.instructions(text) == [("FROM", "x"), ("RUN", "a && b c"), ("CMD", "d")]


def test_our_own_has_those_that_the_suite_follows() -> None:
    found = dict(plain.instructions((CLONE / "Containerfile").read_text()))
    assert found["COPY"] == ". /opt/skbulk"
    assert found["WORKDIR"] == "/opt/skbulk"
    assert found["ENV"] == "XDG_CACHE_HOME=/cache"
    assert json.loads(found["CMD"]) == ["make", "doctor"]
    assert found["RUN"].startswith("apt-get update && apt-get install -y ")
