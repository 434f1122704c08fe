#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures forwarding with both drivers in turn, inside the guest.

Both drivers are loaded at the same time, each bound to two of the four ports,
so that they take turns within a second and a disturbance of the machine hits
both. The plan comes in the variable PLAN as JSON; a line of JSON for each
measurement goes to /mnt/job/results/forward.jsonl.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedRWPair
from pathlib import Path
from typing import Any

from senders import PKTGEN, Wrong, load, run, wait_for

RESULTS = Path("/mnt/job/results/forward.jsonl")
PCI = Path("/sys/bus/pci/devices")
POOL = Path("/proc/sys/net/core/skb_qmempool")
GENERATOR, SINK = "02:00:00:00:00:02", "02:00:00:00:01:02"
MODULES = {"c": "ixgbe", "rust": "ixgbe_rust"}
# The destination of frames that are dropped.
NOWHERE = "10.99.0.1"
# Attempts for a measurement that lost packets.
TRIES = 3
# Steps of the search for a rate without loss: each halves the interval.
SEARCH = 7
# The figures of one measurement, by name; None if it makes no sense.
Figures = dict[str, float] | None
# Of a case, in a pair.
Measure = Callable[[dict[str, Any], int], None]


def say(text: str) -> None:
    """A line of progress."""
    print(f"forward: {text}", flush=True)


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

    def generate(self, count: int, **more: Any) -> dict[str, Any]:
        """Run the generator; returns the answer."""
        request = {
            "cmd": "generate", "from": self.first, "to": self.first + 1, "count": count,
            "src_mac": GENERATOR, "dst_mac": self.mac(0),
            "expect_src_mac": self.mac(1), "expect_dst_mac": SINK,
            "src_ip": f"{self.subnet}.0.2", "dst_ip": f"{self.subnet}.1.2",
            "drain_ms": 3000, "timeout_ms": 60000, **more,
        }  # fmt: skip
        answer = json.loads(WIRE.ask(json.dumps(request)))
        if answer.get("ok") is not True:
            raise Wrong(f"the model refused: {answer}")
        return dict(answer)


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
    return sides


def bring_up(side: Side) -> None:
    """A router between two hosts that exist only in the generator."""
    for device in side.devices:
        names = [path.name for path in (PCI / device / "net").glob("*")]
        if not names:
            raise Wrong(f"{MODULES[side.driver]} made no interface for {device}")
        side.ports.append(names[0])
    for number, (port, peer) in enumerate(zip(side.ports, (GENERATOR, SINK), strict=True)):
        for feature in ("gro", "gso", "tso"):
            subprocess.run(
                ["ethtool", "-K", port, feature, "off"], capture_output=True, check=False
            )
        run("ip", "addr", "add", f"{side.subnet}.{number}.1/24", "dev", port)
        run("ip", "link", "set", port, "up")
        run("ip", "neigh", "replace", f"{side.subnet}.{number}.2", "lladdr", peer,
            "dev", port, "nud", "permanent")  # fmt: skip


def spread(side: Side, queues: int) -> None:
    """So many queue pairs per port, with the flows of UDP spread over them."""
    for port in side.ports:
        run("ethtool", "-L", port, "combined", str(queues))
        run("ethtool", "-N", port, "rx-flow-hash", "udp4", "sdfn")
        found = len(list(Path(f"/sys/class/net/{port}/queues").glob("rx-*")))
        if found != queues:
            raise Wrong(f"{side.driver}: {port} has {found} queues instead of {queues}")


def poll_in_threads(side: Side, queues: int) -> None:
    """A thread for each queue pair, on a CPU of its own: one CPU takes all interrupts here."""
    for port in side.ports:
        Path(f"/sys/class/net/{port}/threaded").write_text("1")
        # Their names end with the ids of the NAPI instances, in the order of the queues.
        lines = run("pgrep", "-l", f"^napi/{port}-").splitlines()
        names = dict(reversed(line.split()) for line in lines)
        pids = [names[name] for name in sorted(names, key=lambda name: int(name.split("-")[-1]))]
        if len(pids) != queues:
            raise Wrong(f"{side.driver}: {port} has {len(pids)} threads for {queues} queues")
        for cpu, pid in enumerate(pids):
            run("taskset", "-p", "-c", str(cpu), pid)


def warm_up(side: Side) -> None:
    """Forward until no packet is lost: the first ones after a link came up are."""
    for _ in range(10):
        answer = side.generate(2000, drain_ms=1000)
        if answer["forwarded"] == answer["sent"]:
            return
        time.sleep(0.5)
    raise Wrong(f"{side.driver}: packets get lost: {answer}")


def wait_carrier(sides: list[Side]) -> None:
    """Wait until all ports have a carrier."""
    paths = [Path(f"/sys/class/net/{port}/carrier") for side in sides for port in side.ports]
    names = ", ".join(path.parent.name for path in paths)
    wait_for(lambda: all(path.read_text().strip() == "1" for path in paths),
             f"not all of {names} had a carrier", 30)  # fmt: skip
    # The queueing discipline is attached a moment later.
    time.sleep(1)


def priv_flag(side: Side) -> str | None:
    """The private flag that switches bulk free, if the driver has one."""
    done = subprocess.run(
        ["ethtool", "--show-priv-flags", side.ports[1]], capture_output=True, text=True, check=False
    )
    found = re.search(r"^(\S*bulk\S*)\s*:", done.stdout, re.M)
    return found[1] if found else None


def switch(side: Side, option: str, on: bool) -> None:
    """Set one option of a driver or of the stack."""
    word = "on" if on else "off"
    if option == "GRO":
        run("ethtool", "-K", side.ports[0], "gro", word)
    elif option == "SKB pool":
        POOL.write_text("1" if on else "0")
    elif option == "bulk free":
        flag = priv_flag(side)
        if flag is None:
            raise Wrong(f"{MODULES[side.driver]} has no private flag for bulk free")
        for port in side.ports:
            run("ethtool", "--set-priv-flags", port, flag, word)
    else:
        raise Wrong(f"there is no option {option}")


def can(side: Side, option: str) -> str | None:
    """The reason why an option cannot be switched here, or None."""
    if option == "bulk free" and priv_flag(side) is None:
        return "the driver has no private flag for it"
    if option == "SKB pool" and not POOL.exists():
        return "the kernel has no pool of skb heads"
    return None


def forward(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Nanoseconds per forwarded packet: elapsed time, and processor time of the guest."""
    for _ in range(TRIES):
        before = processor_time()
        answer = side.generate(frames, flows=cell.get("flows", 1))
        spent = processor_time() - before
        if answer["forwarded"] == frames:
            return {"ns": 1e9 * answer["seconds"] / frames, "cost": spent / frames}
        # A guest that got no processor for seconds is no measurement; a repeated
        # loss of packets is a finding.
        say(f"{side.driver}: {answer['forwarded']} of {frames} forwarded, again: {answer}")
    raise Wrong(f"{side.driver}: packets get lost: {answer}")


def drop(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Nanoseconds per packet that is received and dropped by the routing table."""
    spent = processor_time()
    answer = side.generate(frames, window=frames, dst_ip=NOWHERE, drain_ms=50)
    spent = processor_time() - spent
    if sum(answer["lost"].values()) != answer["lost"]["in_guest"]:
        raise Wrong(f"{side.driver}: frames got lost before the guest: {answer['lost']}")
    # A model that is never held back is slower than the guest: there is no rate of the guest
    # then, but it has slept as long as it had nothing to do.
    rate = answer.get("taken_pps")
    return {"cost": spent / frames, **({"ns": 1e9 / rate} if rate else {})}


def ping_pong(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Nanoseconds from port to port, one packet at a time."""
    answer = side.generate(frames, window=1, latency=True)
    if answer["forwarded"] != frames:
        raise Wrong(f"{side.driver}: {answer['forwarded']} of {frames} came back")
    return {"median": answer["latency_ns"]["median"], "p99": answer["latency_ns"]["p99"]}


def transmit(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Nanoseconds per packet of pktgen that the driver sends."""
    port = side.ports[1]
    thread = PKTGEN / "kpktgend_0"
    for line in ("rem_device_all", f"add_device {port}"):
        thread.write_text(line + "\n")
    for line in (f"count {frames}", "clone_skb 0", "pkt_size 60", "delay 0",
                 f"dst {side.subnet}.1.2", f"dst_mac {SINK}"):  # fmt: skip
        (PKTGEN / port).write_text(line + "\n")
    spent = processor_time()
    (PKTGEN / "pgctrl").write_text("start\n")
    spent = processor_time() - spent
    text = (PKTGEN / port).read_text()
    thread.write_text("rem_device_all\n")
    found = re.search(r"Result: OK: (\d+)\(", text)
    if not found:
        raise Wrong(f"pktgen: {text.strip().splitlines()[-1]}")
    return {"ns": 1000.0 * int(found[1]) / frames, "cost": spent / frames}


def events(side: Side) -> dict[str, int]:
    """Interrupts of both ports so far, and what was counted for the transmitting one."""
    count = 0
    for port in (side.first, side.first + 1):
        count += int(json.loads(WIRE.ask(json.dumps({"cmd": "stats", "port": port})))["interrupts"])
    found = {"interrupts": count, "requeues": 0, "drops": 0}
    for qdisc in json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", side.ports[1])):
        for name in ("requeues", "drops"):
            found[name] += int(qdisc.get(name, 0))
    # The C driver counts none: it rings one for each forwarded packet.
    bells = re.search(r"^\s*tx_doorbells: (\d+)$", run("ethtool", "-S", side.ports[1]), re.M)
    return found | ({"doorbells": int(bells[1])} if bells else {})


def windowed(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """As forward(), with so many packets under way; events and losses per packet."""
    before, spent = events(side), processor_time()
    answer = side.generate(frames, window=cell["window"], drain_ms=300)
    spent = processor_time() - spent
    after, done = events(side), answer["forwarded"]
    if not done:
        raise Wrong(f"{side.driver}: nothing was forwarded: {answer}")
    return {
        "ns": 1e9 * answer["seconds"] / done,
        "cost": spent / done,
        "lost": (answer["sent"] - done) / answer["sent"],
        **{name: (after[name] - before[name]) / done for name in before},
    }


def lossless(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Nanoseconds per packet at the highest rate without loss."""
    low, high = 0.0, 1.3 * float(side.generate(frames)["pps"])
    best = 0.0
    for _ in range(SEARCH):
        middle = (low + high) / 2
        answer = side.generate(frames, window=0, rate=round(middle))
        # The offered rate counts: the model may have had to wait for a processor.
        if answer["forwarded"] == frames:
            low, best = middle, max(best, float(answer["offered_pps"]))
        else:
            high = middle
    return {"ns": 1e9 / best} if best else None


KINDS = {"forward": forward, "drop": drop, "latency": ping_pong, "transmit": transmit,
         "lossless": lossless, "window": windowed}  # fmt: skip


# Reasons for a measurement without figures.
NOTHING = {
    "lossless": "packets got lost at any rate",
}


class Bench:
    """Goes through the plan."""

    def __init__(self, plan: dict[str, Any], sides: list[Side]) -> None:
        self.plan = plan
        self.sides = sides
        # Cases that failed: they are not measured again.
        self.failed: set[str] = set()

    def note(self, **fields: Any) -> None:
        """One line of the results."""
        with RESULTS.open("a") as file:
            file.write(json.dumps(fields) + "\n")

    def record(
        self, cell: dict[str, Any], side: Side, pair: int, found: Figures, **more: Any
    ) -> None:
        """Record the figures of a measurement, or their absence."""
        if found is None:
            why = f"{NOTHING[cell['kind']]}, in pair {pair}"
            self.note(case=cell["case"], driver=side.driver, missing=why)
        else:
            self.note(case=cell["case"], driver=side.driver, pair=pair, **more, **found)

    def compare(self, cell: dict[str, Any], pair: int) -> None:
        """Measure both drivers; the order changes with each pair."""
        for side in self.sides[:: 1 if pair % 2 else -1]:
            self.record(cell, side, pair, KINDS[cell["kind"]](side, cell, cell["frames"]))

    def toggle(self, cell: dict[str, Any], pair: int) -> None:
        """Measure each driver with an option on and off."""
        option = cell["option"]
        for side in self.sides:
            if can(side, option):
                continue
            for on in (True, False) if pair % 2 else (False, True):
                switch(side, option, on)
                found = KINDS[cell["kind"]](side, cell, cell["frames"])
                self.record(cell, side, pair, found, on=on)
            switch(side, option, option == "bulk free")

    def warm_up(self, cell: dict[str, Any], pair: int) -> None:
        """Measure once, which does not count."""
        for side in self.sides:
            if "option" in cell:
                if why := can(side, cell["option"]):
                    self.note(case=cell["case"], driver=side.driver, missing=why)
            elif cell["kind"] != "lossless":
                KINDS[cell["kind"]](side, cell, max(cell["frames"] // 10, 1000))

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
                measure = self.toggle if "option" in cell else self.compare
                self.attempt(measure, cell, pair)


def main() -> int:
    """Set up, measure; the exit code."""
    plan = json.loads(os.environ["PLAN"])
    try:
        say("loading the drivers")
        sides = bind(plan["drivers"])
        if any(cell["kind"] == "transmit" for cell in plan["cells"]):
            load("pktgen")
        run("sysctl", "-q", "net.ipv4.ip_forward=1", "net.ipv4.ip_early_demux=0")
        run("ip", "route", "add", "blackhole", "10.99.0.0/24")
        queues = plan.get("queues", 0)
        for side in sides:
            bring_up(side)
            if queues:
                spread(side, queues)
        wait_carrier(sides)
        if queues:
            for side in sides:
                poll_in_threads(side, queues)
        for side in sides:
            warm_up(side)
        bench = Bench(plan, sides)
        bench.run()
    except Wrong as error:
        say(f"error: {error}")
        return 1
    # The host tells the reasons.
    return 2 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
