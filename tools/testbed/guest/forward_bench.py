#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures forwarding with both drivers in turn, inside the guest.

in_turn.py describes the plan and the results, in forward.jsonl.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from in_turn import (
    Bench,
    Figures,
    Side,
    ask_model,
    main,
    processor_time,
    say,
    wait_carrier,
)
from senders import PKTGEN, Wrong, load, run, tell, wait_for
from udp_sink import received, udp_sink

GENERATOR, SINK = "02:00:00:00:00:02", "02:00:00:00:01:02"
# Attempts for a measurement that lost packets.
TRIES = 3
# Datagrams for which the buffer of a socket has room.
PORTION = 10_000
# Steps of the search for a rate without loss: each halves the interval.
SEARCH = 7


def generate(side: Side, count: int, **more: Any) -> dict[str, Any]:
    """Run the generator; returns the answer."""
    return ask_model({
        "cmd": "generate", "from": side.first, "to": side.first + 1, "count": count,
        "src_mac": GENERATOR, "dst_mac": side.mac(0),
        "expect_src_mac": side.mac(1), "expect_dst_mac": SINK,
        "src_ip": f"{side.subnet}.0.2", "dst_ip": f"{side.subnet}.1.2",
        "drain_ms": 3000, "timeout_ms": 60000, **more,
    })  # fmt: skip


def bring_up(side: Side) -> None:
    """A router between two hosts that exist only in the generator."""
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
        answer = generate(side, 2000, drain_ms=1000)
        if answer["forwarded"] == answer["sent"]:
            return
        time.sleep(0.5)
    raise Wrong(f"{side.driver}: packets get lost: {answer}")


def has_carrier(port: str) -> bool:
    """Whether an interface of this namespace has a carrier."""
    return Path(f"/sys/class/net/{port}/carrier").read_text().strip() == "1"


def events(side: Side) -> dict[str, int]:
    """Interrupts of both ports so far, and what was counted for the transmitting one."""
    found = {**side.totals("interrupts"), "requeues": 0, "drops": 0}
    for qdisc in json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", side.ports[1])):
        for name in ("requeues", "drops"):
            found[name] += int(qdisc.get(name, 0))
    # The C driver counts none: it rings one for each forwarded packet.
    bells = re.search(r"^\s*tx_doorbells: (\d+)$", run("ethtool", "-S", side.ports[1]), re.M)
    return found | ({"doorbells": int(bells[1])} if bells else {})


def forward(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Nanoseconds per forwarded packet: elapsed time, and processor time of the guest."""
    for _ in range(TRIES):
        spent = processor_time()
        answer = generate(side, frames, flows=cell.get("flows", 1))
        spent = processor_time() - spent
        if answer["forwarded"] == frames:
            return {"ns": 1e9 * answer["seconds"] / frames, "cost": spent / frames}
        # A guest that got no processor for seconds is no measurement; a repeated
        # loss of packets is a finding.
        say(f"{side.driver}: {answer['forwarded']} of {frames} forwarded, again: {answer}")
    raise Wrong(f"{side.driver}: packets get lost: {answer}")


def socket_sink(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Processor time per packet that a process receives from a socket."""
    here = f"{side.subnet}.0.1"
    with udp_sink(here):
        first, spent = received(), processor_time()
        for end in range(PORTION, frames + 1, PORTION):
            answer = generate(side, PORTION, window=PORTION, dst_ip=here, drain_ms=0)
            wait_for(partial(have_come, first + end), f"datagrams were missing: {answer}")
        spent = processor_time() - spent
    return {"cost": spent / (frames // PORTION * PORTION)}


def have_come(datagrams: int) -> bool:
    """Whether processes have read so many datagrams."""
    return received() >= datagrams


def ping_pong(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Nanoseconds from port to port, one packet at a time."""
    answer = generate(side, frames, window=1, latency=True)
    if answer["forwarded"] != frames:
        raise Wrong(f"{side.driver}: {answer['forwarded']} of {frames} came back")
    return {"median": answer["latency_ns"]["median"], "p99": answer["latency_ns"]["p99"]}


def transmit(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """Nanoseconds per packet of pktgen that the driver sends."""
    port = side.ports[1]
    thread = PKTGEN / "kpktgend_0"
    for line in ("rem_device_all", f"add_device {port}"):
        thread.write_text(line + "\n")
    for line in (f"count {frames}", "clone_skb 0", f"burst {cell.get('burst', 1)}",
                 "pkt_size 60", "delay 0",
                 f"dst {side.subnet}.1.2", f"dst_mac {SINK}"):  # fmt: skip
        tell(PKTGEN / port, line)
    spent = processor_time()
    (PKTGEN / "pgctrl").write_text("start\n")
    spent = processor_time() - spent
    text = (PKTGEN / port).read_text()
    thread.write_text("rem_device_all\n")
    found = re.search(r"Result: OK: (\d+)\(", text)
    if not found:
        raise Wrong(f"pktgen: {text.strip().splitlines()[-1]}")
    return {"ns": 1000.0 * int(found[1]) / frames, "cost": spent / frames}


def windowed(side: Side, cell: dict[str, Any], frames: int) -> Figures:
    """As forward(), with so many packets under way; events and losses per packet."""
    before, spent = events(side), processor_time()
    answer = generate(side, frames, window=cell["window"], drain_ms=300)
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
    low, high = 0.0, 1.3 * float(generate(side, frames)["pps"])
    best = 0.0
    for _ in range(SEARCH):
        middle = (low + high) / 2
        answer = generate(side, frames, window=0, rate=round(middle))
        # The offered rate counts: the model may have had to wait for a processor.
        if answer["forwarded"] == frames:
            low, best = middle, max(best, float(answer["offered_pps"]))
        else:
            high = middle
    return {"ns": 1e9 / best} if best else None


KINDS = {"forward": forward, "latency": ping_pong, "transmit": transmit, "lossless": lossless,
         "window": windowed, "sink": socket_sink}  # fmt: skip


class Forwarding(Bench):
    """Routes between the ports of each driver, and pktgen on one of them."""

    NOTHING: Mapping[str, str] = {"lossless": "packets got lost at any rate"}

    def set_up(self) -> None:
        """A router for each driver, that loses no packet."""
        if any(cell["kind"] == "transmit" for cell in self.plan["cells"]):
            load("pktgen")
        run("sysctl", "-q", "net.ipv4.ip_forward=1", "net.ipv4.ip_early_demux=0")
        queues = self.plan.get("queues", 0)
        for side in self.sides:
            bring_up(side)
            if queues:
                spread(side, queues)
        wait_carrier((port, partial(has_carrier, port))
                     for side in self.sides for port in side.ports)  # fmt: skip
        if queues:
            for side in self.sides:
                poll_in_threads(side, queues)
        for side in self.sides:
            warm_up(side)

    def measure(self, side: Side, cell: dict[str, Any], short: bool = False) -> Figures:
        """Measure a case with one driver."""
        frames = max(cell["frames"] // 10, 1000) if short else cell["frames"]
        return KINDS[cell["kind"]](side, cell, frames)

    def warm_up(self, cell: dict[str, Any], pair: int) -> None:
        """Measure once, which does not count."""
        if cell["kind"] != "lossless":
            super().warm_up(cell, pair)


if __name__ == "__main__":
    sys.exit(main(Forwarding, "forward.jsonl"))
