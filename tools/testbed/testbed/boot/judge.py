# SPDX-License-Identifier: GPL-2.0
"""The judge of the NIC model: rules of the datasheet that the driver has broken."""

from dataclasses import dataclass, fields

from testbed.boot.nicmodel import Model

# The model's names of drivers with known breaches, by the names of load-driver.
_EXCUSED = {"c": "ixgbe", "rust_driver_net": "rust_driver_net"}
# Drivers that do as ixgbe where no datasheet says so.
_ALIKE = ("c", "rust")


def words(driver: str) -> list[str]:
    """Words for the model's command line."""
    excuse = _EXCUSED.get(driver)
    return ["--judge", *(["--conventions"] if driver in _ALIKE else []),
            *(["--excuse", excuse] if excuse else [])]  # fmt: skip


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


def breaches(model: Model) -> list[Breach]:
    """Those so far for which the driver is not excused; none without a judge."""
    told = model.ask({"cmd": "judge"})["breaches"]
    return [Breach(**{one.name: entry[one.name] for one in fields(Breach)})
            for entry in told if not entry["excused"]]  # fmt: skip
