# SPDX-License-Identifier: GPL-2.0
"""The judge of the NIC model: rules of the datasheet that the driver has broken."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.boot.nicmodel import Model

# The model's names of drivers with known breaches, by the names of load-driver.
_EXCUSED = {"c": "ixgbe", "rust_driver_net": "rust_driver_net"}


def words(driver: str) -> list[str]:
    """Words for the model's command line."""
    excuse = _EXCUSED.get(driver)
    return ["--judge", *(["--excuse", excuse] if excuse else [])]


@dataclass(frozen=True)
class Breach:
    """All breaches of one rule by one queue."""

    port: int
    queue: str | None
    rule: str
    source: str
    about: str
    count: int
    detail: str

    def __str__(self) -> str:
        where = f"port {self.port}" + (f", {self.queue}" if self.queue else "")
        return f"{self.rule} ({self.source}): {self.about}; {where}, {self.count} times"


def _breach(entry: Mapping[str, Any]) -> Breach:
    return Breach(**{name: entry[name] for name in Breach.__dataclass_fields__})


def breaches(model: Model) -> list[Breach]:
    """Those so far for which the driver is not excused; none without a judge."""
    answer = model.ask({"cmd": "judge"})
    return [_breach(entry) for entry in answer["breaches"] if not entry["excused"]]
