#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures TCP and UDP over a cable with both drivers in turn, inside the guest.

The ports of a driver are the ends of a cable; the second one, the peer, has a namespace
of its own. in_turn.py describes the plan and the results, in tcp.jsonl; streams.py
sends and receives.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from in_turn import Bench, Figures, Side, ask_model, main, processor_time, wait_carrier
from senders import Wrong, load, run

STREAMS = Path(__file__).with_name("streams.py")
# Seconds for a measurement, on a machine that is busy otherwise.
PATIENCE = 60
# The part of a stream that only warms the connections up.
WARM = 1 / 8
# Offloads that a case may switch off.
SEGMENTATION = ("tso", "tx-udp-segmentation")
# The model's counts, of events.
COUNTS = ("interrupts", "rx_no_descriptor")
# Bytes of a socket's buffer at most.
BUFFERS = 8 << 20
# Pages of all TCP sockets together: low, pressure, most. The memory of the guest
# is small: by default, 16 flows would measure how TCP does with too little of it.
TCP_PAGES = (65_536, 98_304, 131_072)
# More packets than the windows of the streams hold.
QUEUE = 20_000


@dataclass
class End:
    """One end of a cable, and the process there."""

    port: str
    address: str
    # Of the second end; the first one has that of this process.
    namespace: str | None = None
    process: subprocess.Popen[str] | None = None

    @property
    def prefix(self) -> list[str]:
        """The beginning of commands for its namespace."""
        return ["ip", "netns", "exec", self.namespace] if self.namespace else []

    def run(self, *words: str) -> str:
        """The output of a command there."""
        return run(*self.prefix, *words)

    def has_carrier(self) -> bool:
        """Whether its port has a carrier."""
        return "LOWER_UP" in self.run("ip", "link", "show", "dev", self.port)

    def order(self, **fields: Any) -> None:
        """Tell the process what to do."""
        if self.process is None:
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, str(STREAMS)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            )  # fmt: skip
        assert self.process.stdin
        self.process.stdin.write(json.dumps(fields) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The next answer of the process."""
        assert self.process and self.process.stdout
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise Wrong(f"no end after {PATIENCE} s")
        answer = json.loads(self.process.stdout.readline() or '{"error": "streams.py has died"}')
        if "error" in answer:
            raise Wrong(answer["error"])
        return dict(answer)

    def stop(self) -> None:
        """End the process, possibly within a system call."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass
class Cable:
    """The ends of a driver's cable, and the state of its ports."""

    ends: tuple[End, End]
    segmentation: bool = True

    def segment(self, on: bool) -> None:
        """Let the card split packets, or the stack."""
        if on != self.segmentation:
            for end in self.ends:
                words = [word for name in SEGMENTATION for word in (name, "on" if on else "off")]
                end.run("ethtool", "-K", end.port, *words)
            self.segmentation = on


def lay(side: Side) -> Cable:
    """Connect the ports of a driver, the second one in a namespace of its own."""
    ask_model({"cmd": "wire", "port": side.first, "kind": "cable", "peer": side.first + 1})
    macs = [side.mac(0), side.mac(1)]
    peer = f"peer-{side.driver}"
    run("ip", "netns", "add", peer)
    run("ip", "link", "set", side.ports[1], "netns", peer)
    first, second = (End(port, f"{side.subnet}.0.{number}") for number, port in
                     enumerate(side.ports, 1))  # fmt: skip
    second.namespace = peer
    for end, other, mac in ((first, second, macs[1]), (second, first, macs[0])):
        end.run("ip", "addr", "add", f"{end.address}/24", "dev", end.port)
        end.run("ip", "link", "set", end.port, "up")
        end.run("ip", "neigh", "replace", other.address, "lladdr", mac,
                "dev", end.port, "nud", "permanent")  # fmt: skip
    return Cable((first, second))


class Streams(Bench):
    """Streams between the ends of each driver's cable."""

    def __init__(self, plan: dict[str, Any], sides: list[Side], results: Path) -> None:
        super().__init__(plan, sides, results)
        self.cables: dict[str, Cable] = {}

    def set_up(self) -> None:
        """A cable for each driver."""
        if any("delay" in cell for cell in self.plan["cells"]):
            load("sch_netem")
        run("sysctl", "-q", f"net.core.rmem_max={BUFFERS}", f"net.core.wmem_max={BUFFERS}",
            f"net.ipv4.tcp_mem={' '.join(map(str, TCP_PAGES))}")  # fmt: skip
        self.cables = {side.driver: lay(side) for side in self.sides}
        ends = [end for cable in self.cables.values() for end in cable.ends]
        wait_carrier((end.port, end.has_carrier) for end in ends)

    def measure(self, side: Side, cell: dict[str, Any], short: bool = False) -> Figures:
        """Megabits of payload per second; processor time and events per KiB and MiB."""
        cable = self.cables[side.driver]
        sender, receiver = cable.ends[::-1] if cell["reverse"] else cable.ends
        cable.segment(cell["segmentation"])
        count = cell["bytes"] // 10 if short else cell["bytes"]
        delay = cell.get("delay")
        if delay:
            sender.run("tc", "qdisc", "replace", "dev", sender.port, "root", "netem",
                       "delay", delay, "limit", str(QUEUE))  # fmt: skip
        try:
            return transfer(side, cell, sender, receiver, count)
        except Wrong as error:
            # They may wait for each other.
            for end in cable.ends:
                end.stop()
            raise Wrong(f"{side.driver}: {error}") from error
        finally:
            if delay:
                sender.run("tc", "qdisc", "del", "dev", sender.port, "root")


def transfer(
    side: Side, cell: dict[str, Any], sender: End, receiver: End, count: int
) -> dict[str, float]:
    """Send so many bytes, after others that warm the connections up."""
    what = " datagrams" if cell["kind"] == "udp" else ""
    warm = int(WARM * count)
    order = {**cell, "warm": warm, "bytes": warm + count}
    before, spent = side.totals(*COUNTS), processor_time()
    receiver.order(**order, do=f"receive{what}", address=receiver.address)
    sender.order(**order, do=f"send{what}", to=receiver.address, port=receiver.answer()["port"])
    sent, found = sender.answer(), receiver.answer()
    spent, after = processor_time() - spent, side.totals(*COUNTS)
    per_mib = (1 << 20) / order["bytes"]
    return {
        "mbits": 8e-6 * found["bytes"] / found["seconds"],
        "cost": 1024 * spent / order["bytes"],
        "retransmitted": sent["retransmitted"] * per_mib,
        **{name: (after[name] - before[name]) * per_mib for name in COUNTS},
    }


if __name__ == "__main__":
    sys.exit(main(Streams, "tcp.jsonl"))
