#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Measures the Rust driver in settings of its mechanisms, inside the guest.

Two ports forward, and two are the ends of a cable. The plan has the settings; each takes turns
with the driver as it is. in_turn.py describes the results, in ablation.jsonl. With counted in the
plan, marks for the insn plugin surround so many frames in each setting instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from forward_bench import TRIES, Forwarding, generate, has_carrier, warm_up
from in_turn import MODULES, Bench, Figures, Side, main, say
from senders import Wrong, run, wait_for
from tcp_bench import Streams

KEYS = Path("/sys/module/net_ablation/parameters")
# A frame of either fits into half a page, or does not.
MTU, LARGE_MTU = 1500, 1511
# The packets under way are those of the demo.
WINDOW = 256
# One at a time: most of the time is that of interrupts.
ALONE = {"case": "window 1", "kind": "window", "window": 1, "frames": 4000}
BASE: dict[str, Any] = {"name": "as it is", "keys": (), "pages": False, "usecs": None}
PATIENCE = 30


class Switches:
    """The mechanisms of the driver, on its ports."""

    def __init__(self, ports: Sequence[tuple[list[str], str]]) -> None:
        # The begin of commands for the namespace of a port, and its name.
        self.ports = ports
        self.now = BASE
        if not KEYS.is_dir():
            raise Wrong("this kernel has no CONFIG_NET_ABLATION")

    def set(self, wanted: dict[str, Any]) -> bool:
        """Change to a setting. Returns whether the ports went down and up."""
        known = [path.name for path in KEYS.iterdir()]
        if unknown := {*wanted["keys"]} - {*known}:
            raise Wrong(f"there are no keys {', '.join(sorted(unknown))}")
        for name in known:
            (KEYS / name).write_text("1\n" if name in wanted["keys"] else "0\n")
        restarted = wanted["pages"] != self.now["pages"]
        for prefix, port in self.ports:
            if wanted["usecs"] != self.now["usecs"]:
                fixed = ["off", "rx-usecs", str(wanted["usecs"])]
                rule = ["on"] if wanted["usecs"] is None else fixed
                run(*prefix, "ethtool", "-C", port, "adaptive-rx", *rule)
            if restarted:
                mtu = LARGE_MTU if wanted["pages"] else MTU
                run(*prefix, "ip", "link", "set", port, "mtu", str(mtu))
        self.now = wanted
        return restarted


class Ablation(Bench):
    """The benchmarks of forwarding and of TCP, with ports of their own."""

    def __init__(self, plan: dict[str, Any], sides: list[Side], results: Path) -> None:
        super().__init__(plan, sides, results)
        self.router = sides[0]
        self.forwarding = Forwarding({"cells": [ALONE]}, sides[:1], results)
        self.streams = Streams({"cells": []}, sides[1:], results)
        self.switches = Switches([([], port) for port in self.router.ports])

    def set_up(self) -> None:
        """A router, and a cable whose segments have one length whatever the MTU."""
        self.forwarding.set_up()
        if self.counted:
            # As in the demo.
            run("sysctl", "-q", "net.ipv4.ip_early_demux=1")
            for port in self.router.ports:
                run("ethtool", "-K", port, "gro", "on")
            return
        self.streams.set_up()
        ends = self.streams.cables["rust"].ends
        for end in ends:
            end.run("ip", "route", "replace", f"{self.sides[1].subnet}.0.0/24", "dev", end.port,
                    "mtu", "lock", str(MTU))  # fmt: skip
        self.switches.ports = [*self.switches.ports, *((end.prefix, end.port) for end in ends)]

    @property
    def counted(self) -> int:
        """Frames whose instructions are counted, or 0."""
        return int(self.plan.get("counted", 0))

    def change(self, setting: dict[str, Any]) -> None:
        """Change to a setting, and wait until no packet is lost."""
        if not self.switches.set(setting):
            return
        known = [partial(has_carrier, port) for port in self.router.ports]
        if not self.counted:
            known += [end.has_carrier for end in self.streams.cables["rust"].ends]
        wait_for(lambda: all(one() for one in known), "not all ports had a carrier", PATIENCE)
        warm_up(self.router)

    def measure(self, side: Side, cell: dict[str, Any], short: bool = False) -> Figures:
        """Measure a case of either benchmark."""
        if cell["kind"] == "tcp":
            return self.streams.measure(self.sides[1], cell, short)
        return self.forwarding.measure(self.router, cell, short)

    def turn(self, setting: dict[str, Any], name: str, pair: int) -> None:
        """Measure all cases in a setting, beside which the row of that name is measured."""
        self.change(setting)
        base = setting is BASE
        for cell in self.plan["cells"]:
            found = self.measure(self.router, cell)
            self.note(setting=name, load=cell["case"], base=base, pair=pair, **(found or {}))

    def pairs(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The settings of all rounds, in one order and the other."""
        for pair in range(1, self.plan["pairs"] + 1):
            for setting in self.plan["settings"][:: 1 if pair % 2 else -1]:
                yield pair, setting

    def compare(self, cell: dict[str, Any], pair: int) -> None:
        """Measure a setting, after the driver as it is."""
        # The row of the driver as it is compares it with itself.
        self.turn(BASE, cell["setting"]["name"], pair)
        self.turn(cell["setting"], cell["setting"]["name"], pair)

    def run(self) -> None:
        """Go through the settings."""
        if self.counted:
            self.count()
            return
        for cell in self.plan["cells"]:
            self.measure(self.router, cell, short=True)
        known = 0
        for pair, setting in self.pairs():
            if pair != known:
                known = pair
                self.change(BASE)
                found = self.measure(self.router, ALONE)
                self.note(setting=BASE["name"], load=ALONE["case"], base=True, pair=pair,
                          **(found or {}))  # fmt: skip
            say(f"round {pair} of {self.plan['pairs']}: {setting['name']}")
            cell = {"case": setting["name"], "setting": dict(setting)}
            self.attempt(self.compare, cell, pair)

    def count(self) -> None:
        """Forward in each setting, between marks."""
        for setting in self.plan["settings"]:
            say(setting["name"])
            self.change(setting)
            forward = partial(generate, self.router, size=60, window=WINDOW)
            forward(self.counted // 10)
            for _ in range(TRIES):
                run("insn-mark", "on", setting["name"], "--module", MODULES["rust"])
                answer = forward(self.counted)
                run("insn-mark", "off")
                # A window of the plugin for each line.
                self.note(setting=setting["name"], lost=self.counted - answer["forwarded"])
                if answer["forwarded"] == self.counted:
                    break
                say(f"{setting['name']}: packets got lost, again: {answer}")
            else:
                raise Wrong(f"{setting['name']}: packets get lost")


if __name__ == "__main__":
    sys.exit(main(Ablation, "ablation.jsonl"))
