# SPDX-License-Identifier: GPL-2.0
"""The end-to-end suites: which driver, in which kernel, with which programs of the selftests.

ONLY= is checked with it before anything is built, so it needs the standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from configparser import ConfigParser, ExtendedInterpolation
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.boot.card import CARDS, MODELLED

FOLDER = "tools/testing/selftests/drivers/net/hw"
# The first may switch off the checker of DMA mappings, and the second looks for leaks of all
# the others.
_LAST = ("alloc_fail.py", "leaks.py")


@dataclass(frozen=True)
class Kind:
    """A suite: a driver in one of the kernels; kinds.ini explains the fields."""

    suite: str
    config: str
    driver: str
    programs: tuple[str, ...]
    beyond: tuple[str, ...]
    without: tuple[str, ...]
    software: tuple[str, ...]
    card: str
    words: tuple[str, ...]
    sign: str

    @property
    def judged(self) -> bool:
        """Whether the model judges the driver."""
        return CARDS[self.card].is_modelled

    def path(self, program: str) -> str:
        """The path of one of its programs, below the folder of all selftests."""
        return f"drivers/net/{program}" if program in self.software else f"drivers/net/hw/{program}"

    @property
    def control(self) -> bool:
        """Whether the driver is the control, which tests the model and the tests. Its failure
        counts if it is there in a second run, too; one that is not is listed as a skipped case."""
        return self.driver == "c"


_LISTS = ("programs", "beyond", "without", "software", "words")
_DEFAULTS = {"driver": "rust", "card": MODELLED, "sign": "", **dict.fromkeys(_LISTS, "")}


def _kinds() -> Iterator[Kind]:
    parser = ConfigParser(_DEFAULTS, interpolation=ExtendedInterpolation())
    parser.read(Path(__file__).with_name("kinds.ini"), encoding="utf-8")
    for suite in parser.sections():
        if suite != "groups":
            values: dict[str, Any] = dict(parser[suite])
            yield Kind(suite, **values | {name: tuple(values[name].split()) for name in _LISTS})


KINDS = tuple(_kinds())


def programs(clone: Path) -> list[str]:
    """The programs in their order; files that are not executable are their helpers."""
    found = [
        path.name for path in sorted((clone / FOLDER).glob("*.py")) if os.access(path, os.X_OK)
    ]
    return sorted(found, key=lambda name: _LAST.index(name) if name in _LAST else -1)


def programs_of(clone: Path, suite: str) -> list[str]:
    """The programs of a suite; none if the suite has no programs."""
    return [
        name
        for kind in KINDS
        if kind.suite == suite
        for name in [*kind.software, *programs(clone)]
        if name in (kind.programs or (name,)) and name not in kind.without
    ]
