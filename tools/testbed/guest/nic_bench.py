#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures many senders on one ring of the modelled card, inside the guest.

Packet sockets call the driver, past the qdisc, with the combining of transmissions
switched on or off. rounds.py describes the plan; a line of JSON for each measurement
goes to /mnt/job/results/xmit-nic.jsonl.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from packet_rings import PacketRings
from rounds import main, nanoseconds
from senders import Wrong, run, wait_for

RESULTS = Path("/mnt/job/results/xmit-nic.jsonl")
FLAG, PARAMETER = "combine-tx", "combine_tx"
# The name of doorbells in the driver's statistics.
DOORBELLS = "doorbell"
MAC, HERE, THERE = "02:00:00:00:01:02", "10.78.0.1", "10.78.0.2"
# Packets of all senders in flight: the ring has room for them, two descriptors each, so
# that senders sleep when all are in flight, and the model has a processor.
PACKETS = 224


@cache
def port() -> str:
    """The interface that sends."""
    found = re.search(r"^PORT0=(\S+)", run("port-names"))
    if found is None:
        raise Wrong("the driver made no interface")
    return found[1]


def set_up() -> None:
    """A port that is up, and a wire that ends in nothing."""
    # Without this the flag cannot be switched on later.
    run("load-driver", "rust", f"{PARAMETER}=1")
    flags = run("ethtool", "--show-priv-flags", port())
    if not re.search(rf"^{FLAG}\s*:", flags, re.M):
        raise Wrong(f"the driver has no private flag {FLAG}: {' '.join(flags.split())}")
    # With a queue for each CPU senders would not share one.
    run("ethtool", "-L", port(), "combined", "1")
    doorbells()
    run("wire", '{"cmd":"wire","port":0,"kind":"sink"}')
    ipv6 = Path(f"/proc/sys/net/ipv6/conf/{port()}/disable_ipv6")
    if ipv6.exists():
        ipv6.write_text("1\n")
    run("ip", "link", "set", port(), "up")
    carrier = Path(f"/sys/class/net/{port()}/carrier")
    wait_for(lambda: carrier.read_text().strip() == "1", f"{port()} had no carrier")
    # Queues start a moment later.
    time.sleep(1)


def count(name: str) -> int:
    """One of the interface's statistics."""
    return int(Path(f"/sys/class/net/{port()}/statistics/{name}").read_text())


def doorbells() -> int:
    """The number of doorbells of the driver so far."""
    text = run("ethtool", "-S", port())
    found = re.findall(rf"^\s*\S*{DOORBELLS}\S*:\s*(\d+)$", text, re.M)
    if len(found) != 1:
        raise Wrong(f"the driver has {len(found)} statistics of doorbells, not one")
    return int(found[0])


def measure(
    cell: Mapping[str, Any], design: Mapping[str, Any], seconds: Mapping[str, float]
) -> dict[str, float]:
    """Nanoseconds from one packet to the next, and the number of doorbells."""
    run("ethtool", "--set-priv-flags", port(), FLAG, design["flag"])
    number = int(cell["senders"])
    # Frames of a ring fill pages.
    frames = PACKETS // number // 16 * 16
    senders = PacketRings(port(), number, MAC, HERE, THERE, frames=frames, bypass=True)
    sent_packets = partial(count, "tx_packets")
    packets, dropped, bells = sent_packets(), count("tx_dropped"), doorbells()
    senders.start()
    ns = nanoseconds(sent_packets, seconds)
    sent = senders.stop()

    def lost() -> int:
        gone = count("tx_dropped") - dropped
        return sent.attempts - sent.refused - gone - (sent_packets() - packets)

    wait_for(lambda: lost() <= 0, "packets that were sent were neither gone nor dropped")
    if lost() < 0:
        raise Wrong(f"{-lost()} packets more than were sent have gone")
    gone = count("tx_dropped") - dropped
    return {"ns": ns, "attempts": sent.attempts, "dropped": gone,
            "doorbells": doorbells() - bells}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(set_up, measure, RESULTS))
