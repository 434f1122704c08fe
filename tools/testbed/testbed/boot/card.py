# SPDX-License-Identifier: GPL-2.0
"""The cards that a guest may have, with the modules of their drivers."""

from __future__ import annotations

from collections.abc import Mapping
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
    words: tuple[str, ...] = ()
    # Paths of the modules without which those of the drivers cannot be loaded.
    needs: tuple[str, ...] = ()

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


MODELLED = "82599"
_IXGBE = {
    "rust": "drivers/net/ethernet/intel/ixgbe/rust/ixgbe_rust.ko",
    "c": "drivers/net/ethernet/intel/ixgbe/ixgbe.ko",
}
_IXGBE_NEEDS = (
    "drivers/net/ethernet/intel/libie/libie_fwlog.ko",
    "drivers/net/mdio.ko",
    "drivers/net/phy/libphy.ko",
    "drivers/net/phy/mdio_bus.ko",
    "drivers/net/phy/mdio_devres.ko",
)
CARDS = {
    MODELLED: Card(_IXGBE, "vfio", "8086:10fb", needs=_IXGBE_NEEDS),
    # Its ports have no cage: they are those of a backplane.
    "82599-kx4": Card(_IXGBE, "vfio", "8086:10f7", ("--device-id", "10f7"), _IXGBE_NEEDS),
    # QEMU's own; the model is the far side of its ports only.
    "e1000e": Card(
        {
            "rust": "samples/rust/driver_e1000e/rust_driver_e1000e.ko",
            "c": "drivers/net/ethernet/intel/e1000e/e1000e.ko",
        },
        "stream",
        "8086:10d3",
    ),
}
