# SPDX-License-Identifier: GPL-2.0
"""Benchmarks of both drivers in turn, inside the guest: their common parts.

Both drivers are loaded at the same time, each bound to two of the four ports,
so that they take turns within a second and a disturbance of the machine hits
both. The plan comes in the variable PLAN as JSON; a line of JSON for each
measurement goes to a file in /mnt/job/results.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BufferedRWPair
from pathlib import Path
from typing import Any

from senders import Wrong, run, wait_for

PCI = Path("/sys/bus/pci/devices")
MODULES = {"c": "ixgbe", "rust": "ixgbe_rust"}
# Seconds until all ports have a carrier.
PATIENCE = 30
# The figures of one measurement, by name; None if it makes no sense.
Figures = dict[str, float] | None
# Of a case, in a pair.
Measure = Callable[[dict[str, Any], int], None]


def say(text: str) -> None:
    """A line of progress."""
    print(f"bench: {text}", flush=True)


class Line:
    """A serial line on which each question has an answer, a line each.

    It stays open, so that no process starts during a measurement.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.file: BufferedRWPair | None = None

    def ask(self, question: str) -> str:
        """The answer."""
        if self.file is None:
            path = Path("/dev/virtio-ports") / self.name
            port = path.open("r+b", buffering=0)
            self.file = BufferedRWPair(port, port)
        self.file.write(question.encode() + b"\n")
        self.file.flush()
        answer = self.file.readline()
        if not answer:
            raise Wrong(f"no answer on {self.name}")
        return answer.decode()


# To the model, on a line that the command wire does not use, and to the host.
WIRE, USAGE = Line("org.skbulk.wire.3"), Line("org.skbulk.usage")


def processor_time() -> int:
    """Nanoseconds of processor time that this guest has had."""
    return int(USAGE.ask("?"))


def ask_model(request: Mapping[str, Any]) -> dict[str, Any]:
    """The model's answer to a request."""
    answer = json.loads(WIRE.ask(json.dumps(request)))
    if answer.get("ok") is not True:
        raise Wrong(f"the model refused: {answer}")
    return dict(answer)


@dataclass
class Side:
    """One driver and its two ports."""

    driver: str
    # The number of its first port, as the model counts.
    first: int
    devices: list[str]
    ports: list[str]
    subnet: str = ""

    def mac(self, port: int) -> str:
        """The MAC address of one of its ports."""
        return Path(f"/sys/class/net/{self.ports[port]}/address").read_text().strip()

    def totals(self, *names: str) -> dict[str, int]:
        """Sums of the model's counts of both ports so far."""
        both = [ask_model({"cmd": "stats", "port": self.first + port}) for port in range(2)]
        return {name: sum(int(one[name]) for one in both) for name in names}

    def find_ports(self) -> None:
        """The names of its interfaces, in the order of the ports."""
        for device in self.devices:
            names = [path.name for path in (PCI / device / "net").glob("*")]
            if not names:
                raise Wrong(f"{MODULES[self.driver]} made no interface for {device}")
            self.ports.append(names[0])


def bind(drivers: list[str]) -> list[Side]:
    """Load the drivers, each for two ports."""
    devices = sorted(
        path.name
        for path in PCI.iterdir()
        if (path / "class").read_text().strip() == "0x020000"
        and (path / "vendor").read_text().strip() == "0x8086"
    )
    if len(devices) < 2 * len(drivers):
        raise Wrong(f"{len(drivers)} drivers need two ports each, here are {len(devices)}")
    sides = []
    for number, driver in enumerate(drivers):
        own = devices[2 * number : 2 * number + 2]
        for device in own:
            (PCI / device / "driver_override").write_text(MODULES[driver])
        sides.append(Side(driver, 2 * number, own, [], f"10.{number}"))
    for side in sides:
        run("load-driver", side.driver)
    for side in sides:
        side.find_ports()
    return sides


def wait_carrier(ports: Iterable[tuple[str, Callable[[], bool]]]) -> None:
    """Wait until all ports have a carrier: their names, and functions that tell."""
    known = list(ports)
    names = ", ".join(name for name, _ in known)
    wait_for(lambda: all(has_carrier() for _, has_carrier in known),
             f"not all of {names} had a carrier", PATIENCE)  # fmt: skip
    # The queueing discipline is attached a moment later.
    time.sleep(1)


class Bench:
    """Goes through the plan; a benchmark says how to set up and to measure."""

    # Reasons for a measurement without figures, by the kind of the cell.
    NOTHING: Mapping[str, str] = {}

    def __init__(self, plan: dict[str, Any], sides: list[Side], results: Path) -> None:
        self.plan = plan
        self.sides = sides
        self.results = results
        # Cases that failed: they are not measured again.
        self.failed: set[str] = set()

    def set_up(self) -> None:
        """Make the ports ready for all cases."""
        raise NotImplementedError

    def measure(self, side: Side, cell: dict[str, Any], short: bool = False) -> Figures:
        """Measure a case with one driver; a short measurement only warms up."""
        raise NotImplementedError

    def note(self, **fields: Any) -> None:
        """One line of the results."""
        with self.results.open("a") as file:
            file.write(json.dumps(fields) + "\n")

    def record(self, cell: dict[str, Any], side: Side, pair: int, found: Figures) -> None:
        """Record the figures of a measurement, or their absence."""
        if found is None:
            why = f"{self.NOTHING[cell['kind']]}, in pair {pair}"
            self.note(case=cell["case"], driver=side.driver, missing=why)
        else:
            self.note(case=cell["case"], driver=side.driver, pair=pair, **found)

    def sides_of(self, cell: dict[str, Any]) -> list[Side]:
        """The drivers that have a case: all, unless it names some."""
        return [side for side in self.sides if side.driver in cell.get("drivers", MODULES)]

    def compare(self, cell: dict[str, Any], pair: int) -> None:
        """Measure both drivers; the order changes with each pair."""
        for side in self.sides_of(cell)[:: 1 if pair % 2 else -1]:
            self.record(cell, side, pair, self.measure(side, cell))

    def warm_up(self, cell: dict[str, Any], pair: int) -> None:
        """Measure once, which does not count."""
        for side in self.sides_of(cell):
            self.measure(side, cell, short=True)

    def attempt(self, measure: Measure, cell: dict[str, Any], pair: int) -> None:
        """Measure a case, unless it has failed before. The others go on if it does."""
        case = cell["case"]
        if case in self.failed:
            return
        try:
            measure(cell, pair)
        except Wrong as error:
            say(f"{case}: failed: {error}")
            self.failed.add(case)
            self.note(case=case, failed=str(error), pair=pair)

    def run(self) -> None:
        """Measure all cells once per pair, after the first time, which does not count."""
        cells = self.plan["cells"]
        for cell in cells:
            self.attempt(self.warm_up, cell, 0)
        for pair in range(1, self.plan["pairs"] + 1):
            for cell in cells:
                if pair > cell.get("pairs", pair):
                    continue
                say(f"pair {pair} of {self.plan['pairs']}: {cell['case']}")
                self.attempt(self.compare, cell, pair)


def main(kind: type[Bench], file: str) -> int:
    """Set up, measure; the exit code."""
    plan = json.loads(os.environ["PLAN"])
    try:
        say("loading the drivers")
        bench = kind(plan, bind(plan["drivers"]), Path("/mnt/job/results") / file)
        bench.set_up()
        bench.run()
    except Wrong as error:
        say(f"error: {error}")
        return 1
    # The host tells the reasons.
    return 2 if bench.failed else 0
