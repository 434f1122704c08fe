#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
XDP programs of a few instructions: verdicts, frames that they move, and how they are attached,
replaced and detached under traffic. They call no functions of the kernel other than helpers, so
they run where there is no JIT, too.
"""

import contextlib
import os
import socket
import struct
import tempfile
from pathlib import Path

from lib.py import CmdExitFailure, KsftNamedVariant, cmd, defer, ethtool, ip, ksft_disruptive
from lib.py import ksft_eq, ksft_exit, ksft_in, ksft_raises, ksft_run, ksft_variants
from lib.py.bpf import XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, drops_with_metadata, pin
from lib.py.bpf import redirect_program, xdp_program
from lib.py.nicmodel import PEERS, NicModelEnv, forwards_after, judged, traffic_intact
from lib.py.support import beside, driver_stats, netdev_stat, repeated, restart_rx_queue, rounds
from lib.py.support import wait_until

ETH_P_TEST = 0x88b5
PEER = bytes.fromhex("020000000002")
# The greatest MTU with which a frame with two tags fits into a buffer.
MAX_MTU = 3050
FRAMES = 500


class Interface:
    """ An interface of no card. """

    def __init__(self, ifname):
        self.ifname = ifname

    def ifindex(self):
        """ Return the index of the interface. """
        return socket.if_nametoindex(self.ifname)


class Programs:
    """ Programs with names, which "ip link" attaches. """

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        cmd(f"mount -t bpf none {self._folder}")
        self._stack.callback(cmd, f"umount {self._folder}")
        self._count = 0

    def add(self, *args, **kwargs):
        """ Load a program of xdp_program(), and return its name. """
        return self.name(xdp_program(*args, **kwargs))

    def name(self, program):
        """ Give a name to a program. """
        self._count += 1
        path = self._folder / str(self._count)
        try:
            pin(program, str(path))
        finally:
            os.close(program)
        return path

    def close(self):
        """ Forget all of them. """
        self._stack.close()


def _attach(port, program):
    """ Attach or replace the program of a port, in its driver. """
    ip(f"-force link set {port.ifname} xdpdrv pinned {program}")


def _detach(port):
    ip(f"link set {port.ifname} xdpdrv off")


def _attach_for_now(cfg, program):
    """ Attach a program to port 0 until the case ends. """
    _attach(cfg.ports[0], program)
    defer(_detach, cfg.ports[0])


def _attached(cfg, *args, **kwargs):
    """ Attach a new program to port 0 until the case ends. """
    _attach_for_now(cfg, cfg.programs.add(*args, **kwargs))


def _counts(cfg):
    stats = driver_stats(cfg.ports[0].ifname)
    return [stats[name] for name in ("rx_packets", "rx_xdp_dropped", "rx_xdp_aborted",
                                     "rx_xdp_redirected", "rx_xdp_transmitted")]


@ksft_variants([KsftNamedVariant("drop", XDP_DROP, 1), KsftNamedVariant("aborted", XDP_ABORTED, 2),
                KsftNamedVariant("illegal", 99, 2)])
def refused(cfg, action, counter):
    """ No frame comes out that a program drops, or fails with. All of them are counted. """
    cfg.settle()
    _attached(cfg, action)
    before = _counts(cfg)
    answer = cfg.generate(FRAMES, drain_ms=200, stall_ms=200)
    ksft_eq(answer["sent"], FRAMES)
    ksft_eq(answer["forwarded"], 0)

    def counted():
        return [now - was for now, was in zip(_counts(cfg), before, strict=True)]

    wait_until(lambda: counted()[counter] >= FRAMES, 10, "all frames are counted")
    ksft_eq(counted()[0], FRAMES, "received")
    ksft_eq(counted()[counter], FRAMES, "refused")


@ksft_variants((60, 128, 1514))
def passed(cfg, size):
    """ Frames that pass come out as they came in. """
    cfg.settle()
    _attached(cfg, XDP_PASS)
    cfg.check_forwarded(FRAMES, size)


def passed_jumbo(cfg):
    """ So do those that are as long as the MTU lets them be. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu {MAX_MTU}")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()
    _attached(cfg, XDP_PASS)
    cfg.settle()
    cfg.check_forwarded(FRAMES, MAX_MTU + 14)


def _back(cfg):
    """ Return the fields of a request for frames that leave by the port that they come in by. """
    port = cfg.ports[0]
    return {"to": port.number, "expect_ttl": 64, "expect_src_mac": PEERS[0],
            "expect_dst_mac": port.mac()}


def _check_sent_back(cfg, count, size=60):
    """ Check that frames leave by the port that they have come in by, as they were. """
    cfg.check_forwarded(count, size, **_back(cfg))


@ksft_variants((60, 128, 1514))
def sent_back(cfg, size):
    """ Frames that a program sends back leave whole and in order, and are counted. """
    port = cfg.ports[0]
    cfg.settle()
    _attached(cfg, XDP_TX)
    before, sent = _counts(cfg)[4], port.stat("tx_packets")
    _check_sent_back(cfg, FRAMES, size)
    ksft_eq(_counts(cfg)[4] - before, FRAMES)
    # The stack may send a packet of its own meanwhile.
    ksft_in(port.stat("tx_packets") - sent - FRAMES, range(10))


@ksft_disruptive
def restarted_while_sending(cfg):
    """ Queues get other memory while their frames are sent, and the link stays up. """
    port = cfg.ports[0]
    cfg.settle()
    _attached(cfg, XDP_TX)
    flaps = _flaps(port)
    cfg.start_traffic(flows=64, **_back(cfg))
    for _ in range(rounds(cfg, 20, 3)):
        for queue in range(cfg.queues):
            restart_rx_queue(port.ifindex(), queue)
    cfg.check_traffic()
    ksft_eq(_flaps(port), flaps, "changes of the carrier")
    _check_sent_back(cfg, FRAMES)


@ksft_disruptive
def link_lost_while_sending(cfg):
    """ The link goes away with frames that were not sent, and comes back. """
    defer(cfg.model.link, 0)
    cfg.settle()
    _attached(cfg, XDP_TX)
    for number in range(rounds(cfg, 6, 2)):
        cfg.start_traffic(flows=64, stall_ms=100, **_back(cfg))
        cfg.traffic.flows()
        cfg.model.link(0, up=False)
        if number % 2:
            # It does not stop while frames wait: the port is restarted then.
            with contextlib.suppress(CmdExitFailure):
                restart_rx_queue(cfg.ports[0].ifindex(), 0)
        cfg.model.link(0)
        cfg.card.wait_up()
        cfg.check_traffic()
        _check_sent_back(cfg, FRAMES)


@ksft_disruptive
def closed_while_sending(cfg):
    """ A port goes down with frames that were not sent, and up. """
    port = cfg.ports[0]
    cfg.settle()
    _attached(cfg, XDP_TX)
    cfg.start_traffic(flows=64, stall_ms=100, **_back(cfg))
    for _ in range(rounds(cfg, 10, 2)):
        ip(f"link set {port.ifname} down")
        ip(f"link set {port.ifname} up")
        cfg.card.wait_up()
    cfg.check_traffic()
    cfg.set_up()
    _check_sent_back(cfg, FRAMES)


def _listen(port):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_TEST))
    sock.bind((port.ifname, ETH_P_TEST))
    sock.settimeout(10)
    return sock


@ksft_variants([KsftNamedVariant("head_in", 16, 0), KsftNamedVariant("tail_in", 0, -20),
                KsftNamedVariant("tail_out", 0, 100), KsftNamedVariant("both", 16, 8)])
def moved(cfg, head, tail):
    """ A frame that a program has cut or made longer arrives so. """
    port = cfg.ports[0]
    mac = bytes.fromhex(port.mac().replace(":", ""))
    frame = mac + PEER + struct.pack("!H", ETH_P_TEST) + bytes(range(1, 100))
    outer = bytes(range(16))[:head]
    expected = frame[:len(frame) + min(tail, 0)] + bytes(max(tail, 0))
    _attached(cfg, XDP_PASS, head=head, tail=tail)
    with _listen(port) as sock:
        for _ in range(3):
            # The card takes frames to its own address.
            cfg.model.inject(0, mac + outer[6:] + frame if head else frame)
            ksft_eq(sock.recv(2000).hex(), expected.hex())


def metadata(cfg):
    """ The stack sees the metadata of a program. """
    port = cfg.ports[0]
    cfg.settle()
    with drops_with_metadata(port.ifindex()):
        _attached(cfg, XDP_PASS)
        cfg.check_forwarded(FRAMES)
        _attach(port, cfg.programs.add(XDP_PASS, meta=True))
        answer = cfg.generate(FRAMES, drain_ms=200, stall_ms=200)
        ksft_eq(answer["forwarded"], 0)
    cfg.check_forwarded(FRAMES)


def _veth():
    """ Make a pair of interfaces the first of which takes redirected frames. """
    ends = ("ksft-in", "ksft-out")
    ip(f"link add {ends[0]} type veth peer name {ends[1]}")
    defer(cmd, f"ip link del {ends[0]}", fail=False)
    # It has a poll function with that.
    ethtool(f"-K {ends[1]} gro on")
    for end in ends:
        ip(f"link set {end} up")
    return [Interface(end) for end in ends]


def _wait_for(interface, packets):
    """ Wait until an interface has received so many packets, and no more. """
    wait_until(lambda: netdev_stat(interface.ifname, "rx_packets") >= packets, 10,
               f"{packets} packets have arrived")
    ksft_eq(netdev_stat(interface.ifname, "rx_packets"), packets)


def redirected(cfg):
    """ Frames that a program redirects arrive there, all of them and whole. """
    cfg.settle()
    into, out = _veth()
    _attach_for_now(cfg, cfg.programs.name(redirect_program(into.ifindex())))
    before = _counts(cfg)[3]
    expected = netdev_stat(out.ifname, "rx_packets")
    for count in (1, 15, 16, 17, FRAMES):
        expected += count
        ksft_eq(cfg.generate(count, drain_ms=50, stall_ms=200)["forwarded"], 0)
        _wait_for(out, expected)
    ksft_eq(_counts(cfg)[3] - before, FRAMES + 49)
    mac = bytes.fromhex(cfg.ports[0].mac().replace(":", ""))
    frame = mac + PEER + struct.pack("!H", ETH_P_TEST) + bytes(range(100, 200))
    with _listen(out) as sock:
        cfg.model.inject(0, frame)
        ksft_eq(sock.recv(2000).hex(), frame.hex())


@ksft_disruptive
def target_goes_away(cfg):
    """ Under traffic, the interface goes away that frames are redirected to. """
    into, _ = _veth()
    _attach_for_now(cfg, cfg.programs.name(redirect_program(into.ifindex())))
    before = _counts(cfg)
    with repeated(cfg.generate, FRAMES):
        wait_until(lambda: _counts(cfg)[3] > before[3], 30, "frames are redirected")
        ip(f"link del {into.ifname}")
        wait_until(lambda: _counts(cfg)[2] > before[2], 30, "frames cannot be redirected")


def _flaps(port):
    return port.attr("carrier_changes")


@ksft_disruptive
def replaced_without_loss(cfg):
    """ Programs are replaced while frames pass, none of which is lost. """
    port, programs = cfg.ports[0], [cfg.programs.add(XDP_PASS) for _ in range(2)]
    cfg.settle()
    _attached(cfg, XDP_PASS)
    flaps = _flaps(port)

    def replace():
        for number in range(rounds(cfg, 30, 4)):
            _attach(port, programs[number % 2])

    with beside(replace) as replacing:
        while replacing.is_alive():
            cfg.check_forwarded(2000)
    ksft_eq(_flaps(port), flaps, "changes of the carrier")


@ksft_disruptive
def attached_under_traffic(cfg):
    """ Programs come and go under traffic over all queues, and the link stays up. """
    cfg.start_traffic(flows=64)
    flaps = [_flaps(port) for port in cfg.ports]
    for _ in range(rounds(cfg, 10, 2)):
        for port in cfg.ports:
            _attach(port, cfg.programs.add(XDP_PASS))
        for port in cfg.ports:
            _detach(port)
            # Back to the buffers of before.
            for queue in range(cfg.queues):
                restart_rx_queue(port.ifindex(), queue)
    ksft_eq([_flaps(port) for port in cfg.ports], flaps, "changes of the carrier")


@ksft_disruptive
def settings_with_a_program(cfg):
    """ A port that gets other rings and queues, or goes down and up, keeps its program. """
    port = cfg.ports[0]
    _attached(cfg, XDP_DROP)
    for change in (f"ethtool -G {port.ifname} rx 128", f"ethtool -G {port.ifname} rx 512",
                   f"ethtool -L {port.ifname} combined 1",
                   f"ethtool -L {port.ifname} combined {cfg.queues}",
                   f"ip link set {port.ifname} mtu {MAX_MTU}",
                   f"ip link set {port.ifname} mtu 1500",
                   f"ip link set {port.ifname} down"):
        cmd(change)
        cfg.set_up()
        before = _counts(cfg)[1]
        # The shortest ring has room for all of them.
        cfg.generate(100, drain_ms=50)
        ksft_eq(_counts(cfg)[1] - before, 100, change)


@ksft_disruptive
def detached_with_longer_frames(cfg):
    """ A program that is gone leaves no limit to the MTU. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu 2000")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()
    _attach(cfg.ports[0], cfg.programs.add(XDP_PASS))
    _detach(cfg.ports[0])
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu 9000")
    cfg.set_up()
    cfg.settle()
    cfg.check_forwarded(FRAMES, 9014)


@ksft_disruptive
def too_long(cfg):
    """ With a program, frames are no longer than a buffer, and the user gets to know. """
    port, program = cfg.ports[0], cfg.programs.add(XDP_PASS)
    ip(f"link set {port.ifname} mtu {MAX_MTU + 1}")
    defer(ip, f"link set {port.ifname} mtu 1500")
    with ksft_raises(CmdExitFailure) as raised:
        _attach(port, program)
    ksft_in(f"the MTU is more than {MAX_MTU}", str(raised.exception))
    ip(f"link set {port.ifname} mtu {MAX_MTU}")
    _attach(port, program)
    defer(_detach, port)
    with ksft_raises(CmdExitFailure):
        ip(f"link set {port.ifname} mtu {MAX_MTU + 1}")


def _lro(port):
    return "large-receive-offload: on" in ethtool(f"-k {port.ifname}").stdout


@ksft_disruptive
def no_lro(cfg):
    """ Programs and LRO exclude each other. """
    port, program = cfg.ports[0], cfg.programs.add(XDP_PASS)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("0", encoding="utf-8")
    defer(cfg.set_up)
    ethtool(f"-K {port.ifname} lro on")
    defer(ethtool, f"-K {port.ifname} lro off")
    ksft_eq(_lro(port), True)
    with ksft_raises(CmdExitFailure) as raised:
        _attach(port, program)
    ksft_in("LRO is on", str(raised.exception))
    ethtool(f"-K {port.ifname} lro off")
    _attach(port, program)
    defer(_detach, port)
    cmd(f"ethtool -K {port.ifname} lro on", fail=False)
    ksft_eq(_lro(port), False)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, ["ixgbe_rust"], "XDP in ixgbe_rust") as cfg:
        cfg.programs = Programs()
        cfg.queues = min(os.cpu_count(), 16)
        try:
            cfg.set_up()
            for port in cfg.ports:
                cmd(f"ethtool -L {port.ifname} combined {cfg.queues}", fail=False)
            cfg.set_up()
            ksft_run(judged([refused, passed, passed_jumbo, moved, metadata, sent_back,
                             restarted_while_sending, link_lost_while_sending,
                             closed_while_sending, forwards_after("sending"),
                             redirected, target_goes_away, forwards_after("redirecting"),
                             replaced_without_loss, forwards_after("replacing"),
                             attached_under_traffic, traffic_intact("attaching"),
                             forwards_after("attaching"), settings_with_a_program,
                             detached_with_longer_frames, too_long, no_lro,
                             forwards_after("all")]), args=(cfg, ))
        finally:
            cfg.programs.close()
    ksft_exit()


if __name__ == "__main__":
    main()
