#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures queueing disciplines, inside the guest: senders, a qdisc, a device that takes all.

The device is a dummy. rounds.py describes the plan; a line of JSON for each
measurement goes to /mnt/job/results/xmit-qdisc.jsonl.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rounds import main, nanoseconds
from senders import Pktgen, Senders, Sent, Udp, Wrong, load, run, wait_for

RESULTS = Path("/mnt/job/results/xmit-qdisc.jsonl")
SYSCTL = Path("/proc/sys/net/core")
DEVICE, HERE, THERE = "sink0", "10.77.0.1", "10.77.0.2"
MAC = "02:00:00:00:77:02"
IPV6 = Path(f"/proc/sys/net/ipv6/conf/{DEVICE}/disable_ipv6")
DELIVERED = Path(f"/sys/class/net/{DEVICE}/statistics/tx_packets")


@dataclass(frozen=True)
class Queue:
    """The counters of a queueing discipline."""

    drops: int
    waiting: int


def queue(text: str, kind: str) -> Queue:
    """Read the output of tc, which must show this kind."""
    # The JSON of tc is invalid if it does not know the options of a kind.
    kinds = re.findall(r"^qdisc (\S+)", text, re.M)
    drops = re.search(r"\(dropped (\d+),", text)
    waiting = re.search(r"^ *backlog \S+ (\d+)p", text, re.M)
    if kinds != [kind] or drops is None or waiting is None:
        raise Wrong(f"{DEVICE} has not the qdisc {kind} alone, but {text.strip()}")
    return Queue(int(drops[1]), int(waiting[1]))


def check(sent: Sent, delivered: int, dropped: int) -> None:
    """No packet may be lost without having been counted.

    Those that were dropped because the list was full only their senders count. These also count
    some packets that the qdisc drops, so at most the refused ones may be missing.
    """
    missing = sent.attempts - delivered - dropped
    if not 0 <= missing <= sent.refused:
        raise Wrong(
            f"of {sent.attempts} packets {delivered} came through and {dropped} were dropped, "
            f"which leaves {missing}; senders counted {sent.refused} refused"
        )


def set_up() -> None:
    """A device that takes everything, with an address so that sockets find it."""
    load("dummy")
    run("ip", "link", "add", DEVICE, "type", "dummy")
    if IPV6.exists():
        # Its own packets would be counted as well.
        IPV6.write_text("1\n")
    run("ip", "addr", "add", f"{HERE}/24", "dev", DEVICE)
    run("ip", "link", "set", DEVICE, "up")


def choose(design: Mapping[str, Any]) -> None:
    """Set the qdisc and the switches of a design."""
    for name, value in design["switches"].items():
        path = SYSCTL / name
        if not path.exists():
            raise Wrong(f"this kernel has no sysctl net.core.{name}")
        path.write_text(f"{value}\n")
        if path.read_text().strip() != str(value):
            raise Wrong(f"net.core.{name} does not become {value}")
    # An old one of the same kind would keep its counters.
    run("tc", "qdisc", "replace", "dev", DEVICE, "root", "noqueue")
    run("tc", "qdisc", "replace", "dev", DEVICE, "root", *design["qdisc"])


def senders_of(cell: Mapping[str, Any]) -> Senders:
    """The senders of a cell."""
    number = int(cell["senders"])
    if cell["load"] == "udp":
        return Udp(DEVICE, number, THERE)
    return Pktgen(DEVICE, number, MAC, THERE)


def delivered() -> int:
    """Packets that have reached the device so far."""
    return int(DELIVERED.read_text())


def measure(
    cell: Mapping[str, Any], design: Mapping[str, Any], seconds: Mapping[str, float]
) -> dict[str, float]:
    """Nanoseconds from one packet at the device to the next, and the counts of all packets."""
    choose(design)
    kind = design["qdisc"][0]
    senders = senders_of(cell)
    start = delivered()
    senders.start()
    ns = nanoseconds(delivered, seconds)
    sent = senders.stop()

    def state() -> Queue:
        return queue(run("tc", "-s", "qdisc", "show", "dev", DEVICE), kind)

    wait_for(lambda: state().waiting == 0, f"packets still waited in {kind}")
    check(sent, delivered() - start, state().drops)
    return {"ns": ns}


if __name__ == "__main__":
    sys.exit(main(set_up, measure, RESULTS))
