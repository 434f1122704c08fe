# SPDX-License-Identifier: GPL-2.0
"""The cards of cards.ini, with the modules of their drivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Card:
    """A card, by its name in the variable CARD."""

    # Paths of modules in the build, by driver: rust, c.
    paths: Mapping[str, str]
    # The model's transport in QEMU.
    transport: str
    pci_id: str
    # For the model's command line.
    words: tuple[str, ...]
    # Paths of the modules without which those of the drivers cannot be loaded.
    needs: tuple[str, ...]

    @property
    def is_modelled(self) -> bool:
        """Whether the card is the model, and not one of QEMU's."""
        return self.transport == "vfio"

    @property
    def modules(self) -> tuple[str, ...]:
        """Paths of all modules with which both drivers can be loaded."""
        return (*self.paths.values(), *self.needs)

    def module(self, driver: str) -> str:
        """The name of a driver's module."""
        return Path(self.paths[driver]).stem


def _cards() -> Iterator[tuple[str, Card]]:
    parser = ConfigParser()
    parser.read(Path(__file__).with_name("cards.ini"), encoding="utf-8")
    for name in parser.sections():
        one = parser[name]
        paths = {driver: one[driver] for driver in ("rust", "c")}
        words, needs = (tuple(one[key].split()) for key in ("words", "needs"))
        yield name, Card(paths, one["transport"], one["pci_id"], words, needs)


MODELLED = "82599"
CARDS = dict(_cards())
