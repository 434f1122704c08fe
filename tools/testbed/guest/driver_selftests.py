#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the kernel's tests of drivers/net and drivers/net/hw on the modelled ports.

Each program has fresh ports, as described in drivers/net/README.rst: NETIF here, its peer at the
other end of a cable in a namespace. With PORTS=pairs, or more words, they are as net/forwarding
expects them: all in this namespace, wired in pairs, and named on the program's command line; a last
one has no cable.
The port must still work after a program: if it does not, the program is blamed, and the host goes
on with a new boot.

Beside the output of run_selftests.py, there is a line "# lost NAME: why" for a lost port.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from run_selftests import ROOT, KernelLog, Program, Runner

# Programs that are newer than the guest's own.
NEWER = "/mnt/job/bin"
PEER = "peer"
# Not 192.0.2 and 198.51.100, which programs give to tunnels.
V4 = ("203.0.113.1", "203.0.113.2")
V6 = ("2001:db8:1::1", "2001:db8:1::2")
# For addresses of containers behind NETIF.
PREFIX_V6 = "2001:db8:2::/64"
# Seconds for a command; for an interface, a carrier, or an answer of the peer.
COMMAND_TIME = 60.0
PATIENCE = 20.0
# The exit code that requests a new boot.
LOST = 3


class PortLostError(Exception):
    """A port does not work any more."""


def run(command: str) -> str:
    """The output of a command. If it hangs or fails, the port is lost."""
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=COMMAND_TIME, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise PortLostError(f"{command}: no end after {COMMAND_TIME:g} s") from error
    if done.returncode != 0:
        raise PortLostError(f"{command}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def wait(what: str, condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise PortLostError(f"{what}: not within {PATIENCE:g} s")
        time.sleep(0.05)


class Port:
    """A port of the modelled card, by its PCI device."""

    def __init__(self, device: Path) -> None:
        self.device = device
        self.driver = (device / "driver").resolve()

    @property
    def name(self) -> str:
        """The name of its interface, if that is in this namespace."""
        return next((path.name for path in self.device.glob("net/*")), "")

    def renew(self) -> None:
        """Unbind the driver from the device, and bind it again."""
        address = self.device.name
        if (self.device / "driver").exists():
            self._write("unbind", address)
        self._write("bind", address)
        wait(f"an interface of {address}", lambda: bool(self.name))

    def _write(self, name: str, address: str) -> None:
        # In a process of its own: it may hang.
        run(f"sh -c 'echo {address} >{self.driver / name}'")


def spread(name: str) -> None:
    """Set one queue per CPU, or as many as the driver supports, if the number can be set."""
    for count in range(directed() or os.cpu_count() or 1, 1, -1):
        command = ["ethtool", "-L", name, "combined", str(count)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_TIME, check=False
        )
        if done.returncode == 0 or "unmodified" in done.stderr:
            break


def directed() -> int:
    """The number of queues, whose interrupts go to one CPU each; 0: a queue for each CPU."""
    return int(os.environ.get("DIRECTED", "0"))


def direct(name: str) -> None:
    """Direct the interrupts of an interface that is up to one CPU each, as administrators do."""
    vectors = Path(f"/sys/class/net/{name}/device/msi_irqs").iterdir()
    numbers = sorted(int(path.name) for path in vectors)
    known = [number for number in numbers if Path(f"/proc/irq/{number}/smp_affinity_list").exists()]
    for place, number in enumerate(known):
        # In a process of its own: it may hang.
        run(f"sh -c 'echo {place % directed()} >/proc/irq/{number}/smp_affinity_list'")


def find_ports() -> list[Port]:
    """All ports, in the order of the wires."""
    found = []
    for device in sorted(Path("/sys/bus/pci/devices").iterdir()):
        ids = [(device / name).read_text().strip() for name in ("vendor", "class")]
        if ids == ["0x8086", "0x020000"] and (device / "driver").exists():
            found.append(Port(device))
    return found


def has_carrier(name: str) -> bool:
    """Whether an interface is operational."""
    return Path(f"/sys/class/net/{name}/operstate").read_text().strip() == "up"


def hash_ports(name: str) -> None:
    """Have the ports of UDP hashed, too, which some programs take for granted."""
    for flow in ("udp4", "udp6"):
        # Not every driver can.
        subprocess.run(
            ["ethtool", "-N", name, "rx-flow-hash", flow, "sdfn"],
            capture_output=True, timeout=COMMAND_TIME, check=False,
        )  # fmt: skip


class Bench:
    """The ports and the cables between them."""

    def __init__(self, ports: Sequence[Port]) -> None:
        self.ports = ports
        for number in range(0, len(ports) - 1, 2):
            self._wire({"cmd": "wire", "port": number, "kind": "cable", "peer": number + 1})
        if len(ports) % 2:
            # The last one has no cable.
            self._wire({"cmd": "link", "port": len(ports) - 1, "up": False})
        # The first program finds the ports as they are after the boot.
        self._peer = ""

    @staticmethod
    def _wire(request: dict[str, object]) -> None:
        run_words = ["wire", json.dumps(request)]
        done = subprocess.run(run_words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PortLostError(f"{run_words}: {done.stdout}{done.stderr}")

    def renew(self) -> None:
        """Fresh ports, all in this namespace and down."""
        self._bring_back_peer()
        for port in self.ports:
            port.renew()
            spread(port.name)

    def plug_in(self) -> dict[str, str]:
        """Move the peer into its namespace; returns the variables for a program."""
        local, self._peer = (port.name for port in self.ports[:2])
        run(f"ip netns add {PEER}")
        run(f"ip link set {self._peer} netns {PEER}")
        run(f"ip -n {PEER} link set lo up")
        for where, name, number in (("", local, 0), (f"-n {PEER} ", self._peer, 1)):
            run(f"ip {where}addr add {V4[number]}/24 dev {name}")
            run(f"ip {where}addr add {V6[number]}/64 dev {name} nodad")
            run(f"ip {where}link set {name} up")
        run(f"ip -n {PEER} route add {PREFIX_V6} via {V6[0]}")
        if directed():
            direct(local)
            hash_ports(local)
        self.check()
        return {
            "NETIF": local, "REMOTE_TYPE": "netns", "REMOTE_ARGS": PEER,
            "LOCAL_V4": V4[0], "REMOTE_V4": V4[1], "LOCAL_V6": V6[0], "REMOTE_V6": V6[1],
            "LOCAL_PREFIX_V6": PREFIX_V6,
        }  # fmt: skip

    def check(self) -> None:
        """Check that both ends of the first cable work, with addresses or without."""
        local = self.ports[0].name
        if not local:
            raise PortLostError("the port has no interface any more")
        where = f"-n {PEER} " if self._peer else ""
        other = self._peer or self.ports[1].name
        run(f"ip link set {local} up")
        run(f"ip {where}link set {other} up")
        wait(f"the carrier of {local}", lambda: has_carrier(local))
        if self._peer:
            run(f"ip addr replace {V4[0]}/24 dev {local}")
            run(f"ip {where}addr replace {V4[1]}/24 dev {other}")
            wait(f"{V4[1]} answers", answers)

    def end(self) -> None:
        """Set all ports down, so that none sends while the machine powers off."""
        self._bring_back_peer()
        for port in self.ports:
            run(f"ip link set {port.name} down")

    def _bring_back_peer(self) -> None:
        pages_back()
        if self._peer:
            run(f"ip -n {PEER} link set {self._peer} netns 1")
            run(f"ip netns delete {PEER}")
            self._peer = ""


def answers() -> bool:
    """Whether the peer answers."""
    command = ["ping", "-q", "-c", "1", "-W", "1", V4[1]]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def pages_back() -> None:
    """Have each CPU receive something.

    An skb freed by another CPU waits for that, and so does the page of the driver's pool in it. If
    the interface were removed meanwhile, the kernel would report the pool as stalled.
    """
    cpus = os.sched_getaffinity(0)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            sock.settimeout(1)
            for cpu in cpus:
                os.sched_setaffinity(0, {cpu})
                with contextlib.suppress(TimeoutError):
                    sock.sendto(b"", sock.getsockname())
                    sock.recv(1)
    finally:
        os.sched_setaffinity(0, cpus)


def main() -> int:
    """Run the programs that PROGRAMS names."""
    os.environ["PATH"] = f"{NEWER}:{os.environ['PATH']}"
    log = KernelLog()
    runner = Runner(ROOT, float(os.environ.get("TIME_LIMIT", "600")), log)
    bench = Bench(find_ports())
    for name in os.environ["PROGRAMS"].split():
        # A failure between programs is no program's fault: the host boots again.
        bench.renew()
        if os.environ.get("PORTS", "").startswith("pairs"):
            names = [port.name for port in bench.ports]
            spare = {"NETIF_NO_CABLE": names.pop()} if len(names) % 2 else {}
            program = Program(name, spare, tuple(names))
        else:
            program = Program(name, bench.plug_in(), ())
        runner.run(program)
        try:
            bench.check()
        except (PortLostError, OSError) as error:
            print(f"# lost {name}: {error}", flush=True)
            log.add(f"lost {name}: {error}")
            return LOST
    log.add("begin the-end")
    bench.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
