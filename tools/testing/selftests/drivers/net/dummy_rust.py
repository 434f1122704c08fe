#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" The dummy driver in Rust counts packets and drops them. """

import os

from lib.py import KsftSkipEx, NetNS
from lib.py import cmd, defer, ip, ksft_eq, ksft_exit, ksft_ge, ksft_in
from lib.py import ksft_ne, ksft_not_in, ksft_run

MODULE = "dummy_rust"
NETDEVS = "/sys/class/net"
PEER = "192.0.2.2"
PINGS = 3
# Ethernet, IPv4 and ICMP headers, and what ping sends.
PING_BYTES = 14 + 20 + 8 + 56


def _device():
    """ Load the module, and return the name of its device. """
    before = set(os.listdir(NETDEVS))
    if cmd(f"modprobe {MODULE}", fail=False).ret:
        raise KsftSkipEx(f"{MODULE} cannot be loaded")
    defer(cmd, f"modprobe -r {MODULE}", fail=False)
    new = set(os.listdir(NETDEVS)) - before
    ksft_eq(len(new), 1)
    return new.pop()


def _sent(name, ns):
    """ Return the packets and bytes that the device has counted. """
    tx = ip(f"-s link show {name}", json=True, ns=ns)[0]["stats64"]["tx"]
    return tx["packets"], tx["bytes"]


def ping(_cfg):
    """ Packets are sent, and none is answered. """
    name = _device()
    with NetNS() as ns:
        ip(f"link set {name} netns {ns.name}")
        ip(f"link set {name} up", ns=ns)
        ip(f"addr add 192.0.2.1/24 dev {name}", ns=ns)
        ip(f"neigh add {PEER} lladdr 02:00:00:00:00:01 dev {name}", ns=ns)

        before = _sent(name, ns)
        said = cmd(f"ping -c {PINGS} -i 0.2 -W 1 {PEER}", ns=ns, fail=False)
        ksft_ne(said.ret, 0)
        packets, sent = (new - old for new, old
                         in zip(_sent(name, ns), before, strict=True))
        ksft_ge(packets, PINGS)
        ksft_ge(sent, PINGS * PING_BYTES)
        cmd(f"modprobe -r {MODULE}")


def carrier(_cfg):
    """ There is a link while the device is up. """
    name = _device()
    for state in ("up", "down", "up"):
        ip(f"link set {name} {state}")
        flags = ip(f"link show {name}", json=True)[0]["flags"]
        (ksft_in if state == "up" else ksft_not_in)("LOWER_UP", flags)


def unload(_cfg):
    """ The device goes with its module, also while it is up. """
    name = _device()
    ip(f"link set {name} up")
    cmd(f"modprobe -r {MODULE}")
    ksft_not_in(name, os.listdir(NETDEVS))


def main():
    """ Run all cases. """
    ksft_run([ping, carrier, unload], args=(None, ))
    ksft_exit()


if __name__ == "__main__":
    main()
