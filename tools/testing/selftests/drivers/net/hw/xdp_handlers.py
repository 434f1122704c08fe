#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Modules that see received frames in place of an XDP program: the samples rust_xdp_router, which
forwards them to the other port, and rust_xdp_reflector, which sends them back.
"""

import socket
import struct
from pathlib import Path

from lib.py import CmdExitFailure, KsftNamedVariant, cmd, defer, ip, ksft_disruptive, ksft_eq
from lib.py import ksft_ge, ksft_in, ksft_lt, ksft_raises, ksft_variants
from lib.py.bpf import XDP_PASS
from lib.py.nicmodel import PEERS, forwards_after
from lib.py.support import driver_stats, insert_module, remove_module, rounds, skip_program
from lib.py.support import wait_until
from xdp_verdicts import FRAMES, attach, carrier_changes, detach, run

ROUTER, REFLECTOR = "rust_xdp_router", "rust_xdp_reflector"
ROUTES = Path("/sys/kernel/debug") / ROUTER / "routes"
UDP_PORT, ETH_P_IP = 5005, 0x0800
MTU = 3050


def _routes(*more):
    """ Return routes to both peers. """
    lines = [f"10.0.{number}.0/24 {number} {peer}" for number, peer in enumerate(PEERS)]
    return "\n".join([*lines, *more]) + "\n"


def _load_router(cfg, routes=None):
    first, second = (port.ifindex() for port in cfg.ports)
    insert_module(ROUTER, f"first={first} second={second}")
    if routes:
        ROUTES.write_text(routes, encoding="ascii")


def _router(cfg, routes=None):
    """ Have the sample route until the case ends. """
    _load_router(cfg, routes or _routes())
    defer(remove_module, ROUTER)


def _counts():
    """ Return how many frames each port was given, and how many were dropped on the way. """
    lines = ROUTES.read_text(encoding="ascii").splitlines()
    return [[int(word) for word in line.split()[1:]] for line in lines if line]


def _statistics(port, *names):
    stats = driver_stats(port.ifname)
    return [stats[name] for name in names]


@ksft_variants((60, 128, 1514))
def routed(cfg, size):
    """ Frames leave by the other port, as a router has them leave, in both directions. """
    cfg.settle()
    _router(cfg)
    before = _statistics(cfg.ports[0], "rx_xdp_redirected", "rx_xdp_aborted")
    for port in (0, 1):
        cfg.check_forwarded(FRAMES, size, port)
    ksft_eq(_counts(), [[FRAMES, 0], [FRAMES, 0]])
    after = _statistics(cfg.ports[0], "rx_xdp_redirected", "rx_xdp_aborted")
    ksft_eq([now - was for now, was in zip(after, before, strict=True)], [FRAMES, 0])


def checksums(cfg):
    """ Headers have the right checksum, whichever it was. """
    cfg.settle()
    _router(cfg)
    # As many as a packet has identifications.
    cfg.check_forwarded(rounds(cfg, 1 << 16, FRAMES))


@ksft_variants([KsftNamedVariant("longest_first", ("10.0.1.2/32 1 {peer}", "0.0.0.0/0 0 {wrong}")),
                KsftNamedVariant("longest_last", ("0.0.0.0/0 0 {wrong}", "10.0.1.2/31 1 {peer}"))])
def longest_prefix(cfg, lines):
    """ The longest prefix counts, in whichever order routes were added. """
    cfg.settle()
    names = {"peer": PEERS[1], "wrong": "02:00:00:00:00:99"}
    _router(cfg, "\n".join(line.format(**names) for line in lines) + "\n")
    cfg.check_forwarded(FRAMES)
    ksft_eq(_counts(), [[0, 0], [FRAMES, 0]])


@ksft_variants([KsftNamedVariant("none", None), KsftNamedVariant("its_own", "10.0.1.2/32 -")])
def to_the_stack(cfg, route):
    """ Frames without a route go to the stack, which has one. """
    cfg.settle()
    _load_router(cfg, _routes(route) if route else None)
    defer(remove_module, ROUTER)
    cfg.check_forwarded(FRAMES)
    ksft_eq(_counts(), [[0, 0], [0, 0]])


def wrong_routes(cfg):
    """ Routes that make no sense are refused, and others can be written once. """
    _load_router(cfg)
    defer(remove_module, ROUTER)
    for line in ("10.0.0.0", "10.0.0/24 0 02:00:00:00:00:01", "10.0.0.0/33 -", "10.0.0.0/24 -1 -",
                 "10.0.0.0/24 2 02:00:00:00:00:01", "10.0.0.0/24 0 02:00:00:00:00:01:02",
                 "10.0.0.0/24 0", "10.0.0.256/24 -"):
        with ksft_raises(OSError):
            ROUTES.write_text(line + "\n", encoding="ascii")
    ROUTES.write_text(_routes(), encoding="ascii")
    with ksft_raises(OSError):
        ROUTES.write_text(_routes(), encoding="ascii")


def _to_be_refused(cfg):
    """ Check that the sample cannot be loaded, and that nothing is left of it. """
    with ksft_raises(CmdExitFailure):
        _load_router(cfg)
    ksft_eq(ROUTES.exists(), False)


def excluded(cfg):
    """ A port has a program or a handler, and frames of one buffer. """
    port, program = cfg.ports[1], cfg.programs.add(XDP_PASS)
    attach(port, program)
    _to_be_refused(cfg)
    detach(port)
    ip(f"link set {port.ifname} mtu {MTU + 1}")
    defer(ip, f"link set {port.ifname} mtu 1500")
    _to_be_refused(cfg)
    ip(f"link set {port.ifname} mtu 1500")
    _router(cfg)
    with ksft_raises(CmdExitFailure) as raised:
        attach(port, program)
    ksft_in("a module handles the frames", str(raised.exception))
    with ksft_raises(CmdExitFailure):
        ip(f"link set {port.ifname} mtu {MTU + 1}")
    with ksft_raises(CmdExitFailure):
        insert_module(REFLECTOR, f"device={port.ifindex()}")


def not_a_port(cfg):
    """ A device whose driver knows no handlers is refused. """
    del cfg
    with ksft_raises(CmdExitFailure):
        insert_module(REFLECTOR, f"device={socket.if_nametoindex('lo')}")
    with ksft_raises(CmdExitFailure):
        insert_module(REFLECTOR, "device=123456")


def _packet(source, target, payload, options=b"", fragment=0, port=UDP_PORT):
    """ Build a UDP datagram, whose checksums are right. """
    def total(data):
        words = struct.unpack(f"!{len(data) // 2}H", data)
        found = sum(words)
        while found >> 16:
            found = (found & 0xffff) + (found >> 16)
        return ~found & 0xffff

    source, target = socket.inet_aton(source), socket.inet_aton(target)
    udp = struct.pack("!HHHH", 1234, port, 8 + len(payload), 0) + payload
    pseudo = source + target + struct.pack("!HH", 17, len(udp))
    check = total(pseudo + udp + b"\0" * (len(udp) % 2)) or 0xffff
    udp = udp[:6] + struct.pack("!H", check) + udp[8:]
    head = struct.pack("!BBHHHBB", 0x45 + len(options) // 4, 0, 20 + len(options) + len(udp), 7,
                       fragment, 64, 17)
    check = total(head + b"\0\0" + source + target + options)
    return head + struct.pack("!H", check) + source + target + options + udp


class Line:
    """ A cable between the ports, whose second one sends and receives raw frames. """

    def __init__(self, cfg):
        self.macs = [bytes.fromhex(port.mac().replace(":", "")) for port in cfg.ports]
        cfg.model.wire(0, "cable", peer=1)
        defer(cfg.model.reset)
        self.sockets = [self._socket(port) for port in cfg.ports]
        cfg.card.wait_up()

    @staticmethod
    def _socket(port):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        defer(sock.close)
        sock.bind((port.ifname, ETH_P_IP))
        sock.settimeout(10)
        return sock

    def _receive(self, number):
        """ Return a frame of the test, and no other that the stack has sent. """
        while True:
            found = self.sockets[number].recv(4000)
            if found[26:28] == b"\x0a\x07":
                return found

    def check(self, packet, answer=None):
        """ Send a packet, and check that its answer comes back, or that it arrives. """
        addresses = self.macs[0] + self.macs[1]
        kind = struct.pack("!H", ETH_P_IP)
        frame = (addresses + kind + packet).ljust(60, b"\0")
        self.sockets[1].send(frame)
        if answer is None:
            ksft_eq(self._receive(0).hex(), frame.hex())
        else:
            back = (addresses[6:] + addresses[:6] + kind + answer).ljust(60, b"\0")
            ksft_eq(self._receive(1).hex(), back.hex())


ENDS = ("10.7.0.2", "10.7.0.1")


def reflected(cfg):
    """ Datagrams to the port come back, byte for byte, with other addresses; others arrive. """
    line = Line(cfg)
    insert_module(REFLECTOR, f"device={cfg.ports[0].ifindex()} port={UDP_PORT}")
    defer(remove_module, REFLECTOR)
    before = _statistics(cfg.ports[0], "rx_xdp_transmitted")[0]
    sizes = (0, 1, 18, 100, 1472)
    for size in sizes:
        payload = bytes(number % 251 for number in range(size))
        line.check(_packet(*ENDS, payload), _packet(*ENDS[::-1], payload))
    line.check(_packet(*ENDS, b"options", bytes(8)), _packet(*ENDS[::-1], b"options", bytes(8)))
    ksft_eq(_statistics(cfg.ports[0], "rx_xdp_transmitted")[0] - before, len(sizes) + 1)
    line.check(_packet(*ENDS, b"another port", port=UDP_PORT + 1))
    line.check(_packet(*ENDS, b"a fragment...", fragment=0x2000))
    line.check(_packet(*ENDS, b"the last fragment", fragment=2))
    tcp = bytearray(_packet(*ENDS, b"another protocol"))
    tcp[9] = 6
    line.check(bytes(tcp))


@ksft_disruptive
def comes_and_goes(cfg):
    """ The module comes and goes under traffic over all queues, and the link stays up. """
    flaps = [carrier_changes(port) for port in cfg.ports]
    cfg.start_traffic(flows=64)
    for _ in range(rounds(cfg, 20, 3)):
        _load_router(cfg, _routes())
        wait_until(lambda: _counts()[1][0], 30, "frames are forwarded")
        remove_module(ROUTER)
    cfg.check_traffic()
    ksft_eq([carrier_changes(port) for port in cfg.ports], flaps, "changes of the carrier")


@ksft_disruptive
def target_down(cfg):
    """ Frames to a port that is down or has no link are dropped, counted, and no others. """
    port = cfg.ports[1]
    cfg.settle()
    _router(cfg)
    defer(cfg.model.link, 1)

    def down():
        ip(f"link set {port.ifname} down")

    def unlink():
        cfg.model.link(1, up=False)
        wait_until(lambda: not port.can_transmit(), 30, "the link is down")

    def link():
        cfg.model.link(1)
        cfg.card.wait_up()

    for harm, mend in ((down, cfg.set_up), (unlink, link)):
        before = _counts()[1][1]
        harm()
        ksft_eq(cfg.generate(FRAMES, drain_ms=200, stall_ms=200)["forwarded"], 0)
        wait_until(lambda before=before: _counts()[1][1] - before >= FRAMES, 10,
                   "all frames are counted")
        ksft_eq(_counts()[1][1] - before, FRAMES)
        mend()
        cfg.check_forwarded(FRAMES)


@ksft_disruptive
def port_unbound(cfg):
    """ Either port goes away under traffic: the module stays, and can go after that. """
    for number in range(2):
        port = cfg.ports[number]
        cfg.settle()
        _load_router(cfg, _routes())
        cfg.start_traffic(flows=64, stall_ms=100)
        cfg.traffic.flows()
        port.unbind()
        if number:
            before = _counts()[1][1]
            wait_until(lambda before=before: _counts()[1][1] > before, 30, "frames are dropped")
        port.bind(cfg.driver)
        cfg.card.find()
        remove_module(ROUTER)
        traffic, cfg.traffic = cfg.traffic, None
        traffic.stop(0)
        cfg.set_up()


@ksft_disruptive
def changed_under_traffic(cfg):
    """ Both ports get other rings and queues, and go down and up, while frames are forwarded. """
    cfg.settle()
    _router(cfg)
    cfg.start_traffic(flows=64, stall_ms=100)
    for number in range(rounds(cfg, 6, 2)):
        for port in cfg.ports:
            for what in (f"ethtool -G {port.ifname} rx {128 << number % 3}",
                         f"ip link set {port.ifname} down", f"ip link set {port.ifname} up"):
                cmd(what)
        cfg.card.wait_up()
    cfg.check_traffic()
    cfg.set_up()
    before = _counts()[1][0]
    cfg.check_forwarded(FRAMES)
    ksft_ge(_counts()[1][0] - before, FRAMES)


def doorbells(cfg):
    """ Frames that follow each other go together. """
    port = cfg.ports[1]
    cfg.settle()
    _router(cfg)
    before = _statistics(port, "tx_xdp_doorbells")[0]
    cfg.check_forwarded(4 * FRAMES)
    ksft_lt(_statistics(port, "tx_xdp_doorbells")[0] - before, 4 * FRAMES)


def main():
    """ Ksft boiler plate main """

    try:
        cmd(f"modprobe -n {ROUTER} {REFLECTOR}")
    except CmdExitFailure:
        skip_program("this kernel has no CONFIG_SAMPLE_RUST_XDP_ROUTER")
    run(__file__, [routed, checksums, longest_prefix, to_the_stack, wrong_routes, excluded,
                   not_a_port, forwards_after("refusals"), reflected, forwards_after("reflecting"),
                   doorbells, comes_and_goes, forwards_after("coming_and_going"), target_down,
                   port_unbound, changed_under_traffic, forwards_after("all")])


if __name__ == "__main__":
    main()
