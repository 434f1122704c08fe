# SPDX-License-Identifier: GPL-2.0
"""Runs selftests on a port of this machine, whose other end is a second machine or a namespace.

The kernel's convention for that is NETIF and REMOTE_TYPE, in drivers/net/README.rst. The addresses
are those that the two interfaces have.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.build.selftests import Selftests
from testbed.env import Env
from testbed.host import proc
from testbed.host.ui import Failure
from testbed.selftests.boots import blame
from testbed.selftests.kinds import FOLDER
from testbed.selftests.results import Program, parse, silent

_RUNNER = "tools/testbed/guest/run_selftests.py"
# The environment of tests for any port with a peer.
_ENVIRONMENT = "from lib.py.peer import PeerEnv"
# Seconds for an answer of the other machine; for a program, beyond its own limit.
_PATIENCE = 30.0
_PROGRAM_TIME = 900.0

Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True)
class Remote:
    """The other end: ssh:HOST or netns:NAME."""

    kind: str
    where: str

    @classmethod
    def of(cls, text: str) -> Remote:
        """Read REMOTE=, which settings.py has checked."""
        kind, _, where = text.partition(":")
        return cls(kind, where)

    def __str__(self) -> str:
        return f"{self.kind}:{self.where}"

    def command(self, *words: str) -> list[str]:
        """The words that run a command there."""
        if self.kind == "netns":
            return ["ip", "netns", "exec", self.where, *words]
        return ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_PATIENCE / 3:.0f}",
                self.where, *words]  # fmt: skip


def variables(netif: str, remote: Remote) -> dict[str, str]:
    """The variables of the kernel's library for a port and its peer."""
    local = _local(netif)
    pairs = dict(
        _pairs(
            _addresses(local),
            _addresses(_asked(remote.command("ip", "-json", "addr"), f"REMOTE={remote}")),
        )
    )
    if not pairs:
        raise Failure(
            f"NETIF={netif}: no address of it is in the same subnet as one of REMOTE={remote}",
            f"an example: ip addr add 192.0.2.1/24 dev {netif}, and 192.0.2.2/24 at the other end",
        )
    found = {"NETIF": netif, "REMOTE_TYPE": remote.kind, "REMOTE_ARGS": remote.where}
    for version, (here, there) in pairs.items():
        found[f"LOCAL_V{version}"], found[f"REMOTE_V{version}"] = str(here.ip), str(there.ip)
    return found


def check_way_here(remote: Remote, where: Mapping[str, str]) -> None:
    """The other end reaches this one: packet filters or another route may prevent that."""
    for address in (where[name] for name in ("LOCAL_V4", "LOCAL_V6") if name in where):
        done = proc.capture(
            remote.command("ping", "-c", "5", "-i", "0.2", "-W", "2", address),
            timeout=_PATIENCE,
        )
        if done.returncode != 0:
            raise Failure(
                f"REMOTE={remote}: a ping from there to {address} has no answer",
                "look for another port in that subnet (ip route) and for packet filters (nft list"
                " ruleset)",
            )


def _local(netif: str) -> list[Any]:
    """The listing of the port, which must be one that can be tested."""
    routes = _asked(["ip", "-json", "route", "show", "default"], "ip route")
    if any(route["dev"] == netif for route in routes):
        raise Failure(
            f"NETIF={netif}: this machine's default route uses it, and the tests set it down",
            "choose a port that is connected to nothing but the other end",
        )
    return _asked(["ip", "-json", "addr", "show", "dev", netif], f"NETIF={netif}")


def _asked(command: Sequence[str], what: str) -> list[Any]:
    """The answer of an ip command."""
    try:
        done = proc.capture(command, stderr=subprocess.PIPE, timeout=_PATIENCE)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{what}: {error}") from error
    if done.returncode != 0:
        raise Failure(f"{what}: {done.stderr.strip()}", f"this has to work: {' '.join(command)}")
    return list(json.loads(done.stdout or "[]"))


def _addresses(links: Iterable[Any]) -> list[Interface]:
    return [
        ipaddress.ip_interface(f"{one['local']}/{one['prefixlen']}")
        for link in links
        for one in link["addr_info"]
        if one.get("scope") == "global" and "local" in one
    ]


def _pairs(
    here: Sequence[Interface], there: Sequence[Interface]
) -> Iterator[tuple[int, tuple[Interface, Interface]]]:
    """A pair of addresses in one subnet for each version of IP."""
    for version in (4, 6):
        for one in here:
            other = next((other for other in there
                          if other.version == version and other.network == one.network
                          and other.ip != one.ip), None)  # fmt: skip
            if other is not None:
                yield version, (one, other)
                break


def programs(clone: Path) -> list[str]:
    """The programs of this clone that test any port with a peer."""
    return [
        path.name
        for path in sorted((clone / FOLDER).glob("*.py"))
        if os.access(path, os.X_OK) and _ENVIRONMENT in path.read_text()
    ]


def run(env: Env, selftests: Selftests, program: str, where: Mapping[str, str]) -> Program:
    """Run one program on this machine; complaints of its kernel are the program's."""
    name = f"drivers/net/hw/{program}"
    log = proc.fresh(env.logs / f"ports-{Path(program).stem}.log")
    proc.run(
        [sys.executable, env.clone / _RUNNER, "--root", selftests.folder, name],
        log,
        what=name,
        # Tests that take long where the machine is emulated run.
        env={**where, "EMULATED": "1"},
        timeout=_PROGRAM_TIME * 1.1,
        check=False,
    )
    found = parse(log.read_text(errors="replace").splitlines(), "the program was ended")
    if not found:
        found = [silent(name, "the program starts", " | ".join(proc.last_errors(log)))]
    blame(found, proc.output(["dmesg"]) or "")
    return found[0]
