# SPDX-License-Identifier: GPL-2.0
"""A plugin of tdc: each case has a network namespace of its own, with a dummy and a veth in it.

tdc has one, which does not wait for what it does unless pyroute2 is there, and makes an ifb, which
not every kernel has.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

# Both come from tdc, next to which this lies.
from tdc_config import NAMES  # type: ignore[import-not-found]
from TdcPlugin import TdcPlugin  # type: ignore[import-not-found]

# A device goes some time after its namespace.
_PATIENCE = 10.0


def _ip(words: str) -> None:
    subprocess.run([NAMES["IP"], *words.split()], check=True)


class SubPlugin(TdcPlugin):  # type: ignore[misc]
    """What tdc calls."""

    def __init__(self) -> None:
        self.sub_class = "ns/SubPlugin"
        super().__init__()

    def pre_case(self, case: dict[str, Any], skipped: bool) -> None:
        """Before a case."""
        if skipped:
            return
        names = self.args.NAMES
        there, dummy = names["NS"], names["DUMMY"]
        outside, inside = names["DEV0"], names["DEV1"]
        end = time.monotonic() + _PATIENCE
        while Path(f"/sys/class/net/{outside}").exists() and time.monotonic() < end:
            time.sleep(0.02)
        _ip(f"netns add {there}")
        _ip(f"link add {outside} type veth peer name {inside} netns {there}")
        _ip(f"-n {there} link add {dummy} type dummy")
        for device in (inside, dummy):
            _ip(f"-n {there} link set {device} up")
        _ip(f"link set {outside} up")

    def post_case(self) -> None:
        """After a case."""
        there = self.args.NAMES["NS"]
        if Path(f"/run/netns/{there}").exists():
            _ip(f"netns del {there}")

    def adjust_command(self, stage: str, command: Any) -> Any:
        """Run it in the namespace."""
        super().adjust_command(stage, command)
        if stage not in ("setup", "execute", "verify", "teardown"):
            return command
        words = [self.args.NAMES["IP"], "netns", "exec", self.args.NAMES["NS"]]
        if isinstance(command, list):
            return [*words, *command]
        return " ".join([*words, command])
