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

from lib.py import CmdExitFailure, KsftNamedVariant, NetdevFamily, cmd, defer, ethtool, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_raises
from lib.py import ksft_run, ksft_variants
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


def attach(port, program):
    """ Attach or replace the program of a port, in its driver. """
    ip(f"-force link set {port.ifname} xdpdrv pinned {program}")


def detach(port):
    ip(f"link set {port.ifname} xdpdrv off")


def attach_for_now(cfg, program):
    """ Attach a program to port 0 until the case ends. """
    attach(cfg.ports[0], program)
    defer(detach, cfg.ports[0])


def attached(cfg, *args, **kwargs):
    """ Attach a new program to port 0 until the case ends. """
    attach_for_now(cfg, cfg.programs.add(*args, **kwargs))


def counts(cfg):
    stats = driver_stats(cfg.ports[0].ifname)
    return [stats[name] for name in ("rx_packets", "rx_xdp_dropped", "rx_xdp_aborted",
                                     "rx_xdp_redirected", "rx_xdp_transmitted")]


@ksft_variants([KsftNamedVariant("drop", XDP_DROP, 1), KsftNamedVariant("aborted", XDP_ABORTED, 2),
                KsftNamedVariant("illegal", 99, 2)])
def refused(cfg, action, counter):
    """ No frame comes out that a program drops, or fails with. All of them are counted. """
    cfg.settle()
    attached(cfg, action)
    before = counts(cfg)
    answer = cfg.generate(FRAMES, drain_ms=200, stall_ms=200)
    ksft_eq(answer["sent"], FRAMES)
    ksft_eq(answer["forwarded"], 0)

    def counted():
        return [now - was for now, was in zip(counts(cfg), before, strict=True)]

    wait_until(lambda: counted()[counter] >= FRAMES, 10, "all frames are counted")
    ksft_eq(counted()[0], FRAMES, "received")
    ksft_eq(counted()[counter], FRAMES, "refused")


@ksft_variants((60, 128, 1514))
def passed(cfg, size):
    """ Frames that pass come out as they came in. """
    cfg.settle()
    attached(cfg, XDP_PASS)
    cfg.check_forwarded(FRAMES, size)


def passed_jumbo(cfg):
    """ So do those that are as long as the MTU lets them be. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu {MAX_MTU}")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()
    attached(cfg, XDP_PASS)
    cfg.settle()
    cfg.check_forwarded(FRAMES, MAX_MTU + 14)


def in_the_stack(cfg):
    """ A program of the stack sees frames that the driver has made packets of. """
    cfg.settle()
    defer(ip, f"link set {cfg.ifname} xdpgeneric off")
    for action, came in ((XDP_PASS, FRAMES), (XDP_DROP, 0), (XDP_PASS, FRAMES)):
        ip(f"-force link set {cfg.ifname} xdpgeneric pinned {cfg.programs.add(action)}")
        ksft_eq(cfg.generate(FRAMES, drain_ms=200, stall_ms=200)["forwarded"], came)


def back(cfg):
    """ Return the fields of a request for frames that leave by the port that they come in by. """
    port = cfg.ports[0]
    return {"to": port.number, "expect_ttl": 64, "expect_src_mac": PEERS[0],
            "expect_dst_mac": port.mac()}


def check_sent_back(cfg, count, size=60):
    """ Check that frames leave by the port that they have come in by, as they were. """
    cfg.check_forwarded(count, size, **back(cfg))


@ksft_variants((60, 128, 1514))
def sent_back(cfg, size):
    """ Frames that a program sends back leave whole and in order, and are counted. """
    port = cfg.ports[0]
    cfg.settle()
    attached(cfg, XDP_TX)
    before, sent = counts(cfg)[4], port.stat("tx_packets")
    check_sent_back(cfg, FRAMES, size)
    ksft_eq(counts(cfg)[4] - before, FRAMES)
    # The stack may send a packet of its own meanwhile.
    ksft_in(port.stat("tx_packets") - sent - FRAMES, range(10))


@ksft_disruptive
def restarted_while_sending(cfg):
    """ Queues get other memory while their frames are sent, and the link stays up. """
    port = cfg.ports[0]
    cfg.settle()
    attached(cfg, XDP_TX)
    flaps = carrier_changes(port)
    cfg.start_traffic(flows=64, **back(cfg))
    for _ in range(rounds(cfg, 20, 3)):
        for queue in range(cfg.queues):
            restart_rx_queue(port.ifindex(), queue)
    cfg.check_traffic()
    ksft_eq(carrier_changes(port), flaps, "changes of the carrier")
    check_sent_back(cfg, FRAMES)


@ksft_disruptive
def link_lost_while_sending(cfg):
    """ The link goes away with frames that were not sent, and comes back. """
    defer(cfg.model.link, 0)
    cfg.settle()
    attached(cfg, XDP_TX)
    for number in range(rounds(cfg, 6, 2)):
        cfg.start_traffic(flows=64, stall_ms=100, **back(cfg))
        cfg.traffic.flows()
        cfg.model.link(0, up=False)
        if number % 2:
            # It does not stop while frames wait: the port is restarted then.
            with contextlib.suppress(CmdExitFailure):
                restart_rx_queue(cfg.ports[0].ifindex(), 0)
        cfg.model.link(0)
        cfg.card.wait_up()
        cfg.check_traffic()
        check_sent_back(cfg, FRAMES)


@ksft_disruptive
def closed_while_sending(cfg):
    """ A port goes down with frames that were not sent, and up. """
    port = cfg.ports[0]
    cfg.settle()
    attached(cfg, XDP_TX)
    cfg.start_traffic(flows=64, stall_ms=100, **back(cfg))
    for _ in range(rounds(cfg, 10, 2)):
        ip(f"link set {port.ifname} down")
        ip(f"link set {port.ifname} up")
        cfg.card.wait_up()
    cfg.check_traffic()
    cfg.set_up()
    check_sent_back(cfg, FRAMES)


@ksft_variants(("restarted", "closed"))
@ksft_disruptive
def lost_is_counted(cfg, how):
    """ Frames that the card has not sent when their queue stops are counted. """
    port, count = cfg.ports[0], 20
    cfg.settle()
    attached(cfg, XDP_TX)
    lost = driver_stats(port.ifname)["rx_xdp_lost"]
    dropped = netdev_stat(port.ifname, "tx_dropped")
    # So the driver knows of them.
    cfg.model.fault(0, "tx_no_done", 100_000)
    check_sent_back(cfg, count)
    cfg.model.mend(0)
    if how == "restarted":
        for queue in range(cfg.queues):
            restart_rx_queue(port.ifindex(), queue)
    else:
        ip(f"link set {port.ifname} down")
    ksft_eq(driver_stats(port.ifname)["rx_xdp_lost"] - lost, count)
    ksft_ge(netdev_stat(port.ifname, "tx_dropped") - dropped, count)
    if how == "closed":
        ip(f"link set {port.ifname} up")
        cfg.set_up()
    check_sent_back(cfg, FRAMES)


def listen(port):
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
    attached(cfg, XDP_PASS, head=head, tail=tail)
    with listen(port) as sock:
        for _ in range(3):
            # The card takes frames to its own address.
            cfg.model.inject(0, mac + outer[6:] + frame if head else frame)
            ksft_eq(sock.recv(2000).hex(), expected.hex())


def metadata(cfg):
    """ The stack sees the metadata of a program. """
    port = cfg.ports[0]
    cfg.settle()
    with drops_with_metadata(port.ifindex()):
        attached(cfg, XDP_PASS)
        cfg.check_forwarded(FRAMES)
        attach(port, cfg.programs.add(XDP_PASS, meta=True))
        answer = cfg.generate(FRAMES, drain_ms=200, stall_ms=200)
        ksft_eq(answer["forwarded"], 0)
    cfg.check_forwarded(FRAMES)


@ksft_variants(("on", "off"))
def tag_kept(cfg, strip):
    """ A frame of a VLAN that passes gets there, whether the card strips its tag or not. """
    port, number = cfg.ports[0], 291
    mac = bytes.fromhex(port.mac().replace(":", ""))
    ethtool(f"-K {port.ifname} rxvlan {strip}")
    defer(ethtool, f"-K {port.ifname} rxvlan on")
    ip(f"link add link {port.ifname} name ksft-vlan type vlan id {number}")
    defer(ip, "link del ksft-vlan")
    ip("link set ksft-vlan up")
    cfg.settle()
    attached(cfg, XDP_PASS)
    plain = struct.pack("!H", ETH_P_TEST) + bytes(range(1, 100))
    with listen(Interface("ksft-vlan")) as sock:
        for _ in range(3):
            cfg.model.inject(0, mac + PEER + struct.pack("!HH", 0x8100, number) + plain)
            ksft_eq(sock.recv(2000).hex(), (mac + PEER + plain).hex())


def hints(cfg):
    """ Users can find out which hints a program can ask for. """
    dev = cfg.netnl.dev_get({"ifindex": cfg.ports[0].ifindex()})
    ksft_eq(set(dev["xdp-rx-metadata-features"]), {"hash", "vlan-tag"})


def veth():
    """ Make a pair of interfaces the first of which takes redirected frames. """
    ends = ("ksft-in", "ksft-out")
    ip(f"link add {ends[0]} type veth peer name {ends[1]}")
    defer(cmd, f"ip link del {ends[0]}", fail=False)
    # It has a poll function with that.
    ethtool(f"-K {ends[1]} gro on")
    for end in ends:
        # Its own packets are not counted.
        own = Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6")
        if own.exists():
            own.write_text("1", encoding="ascii")
        ip(f"link set {end} up")
    return [Interface(end) for end in ends]


def wait_for(interface, packets):
    """ Wait until an interface has received so many packets, and no more. """
    wait_until(lambda: netdev_stat(interface.ifname, "rx_packets") >= packets, 10,
               f"{packets} packets have arrived")
    ksft_eq(netdev_stat(interface.ifname, "rx_packets"), packets)


def check_redirected(cfg, size=60, payload=bytes(range(100, 200)), mtu=1500, frags=False):
    """
    Have a program redirect frames: of a size, which are counted, and of a payload, whose bytes are.
    """
    cfg.settle()
    into, out = veth()
    for end in (into, out):
        ip(f"link set {end.ifname} mtu {mtu}")
    attach_for_now(cfg, cfg.programs.name(redirect_program(into.ifindex(), frags=frags)))
    before = counts(cfg)[3]
    expected = netdev_stat(out.ifname, "rx_packets")
    for count in (1, 15, 16, 17, FRAMES):
        expected += count
        ksft_eq(cfg.generate(count, size, drain_ms=50, stall_ms=200)["forwarded"], 0)
        wait_for(out, expected)
    ksft_eq(counts(cfg)[3] - before, FRAMES + 49)
    mac = bytes.fromhex(cfg.ports[0].mac().replace(":", ""))
    frame = mac + PEER + struct.pack("!H", ETH_P_TEST) + payload
    with listen(out) as sock:
        cfg.model.inject(0, frame)
        ksft_eq(sock.recv(10000).hex(), frame.hex())


def redirected(cfg):
    """ Frames that a program redirects arrive there, all of them and whole. """
    check_redirected(cfg)


@ksft_disruptive
def target_goes_away(cfg):
    """ Under traffic, the interface goes away that frames are redirected to. """
    into, _ = veth()
    attach_for_now(cfg, cfg.programs.name(redirect_program(into.ifindex())))
    before = counts(cfg)
    with repeated(cfg.generate, FRAMES):
        wait_until(lambda: counts(cfg)[3] > before[3], 30, "frames are redirected")
        ip(f"link del {into.ifname}")
        wait_until(lambda: counts(cfg)[2] > before[2], 30, "frames cannot be redirected")


def carrier_changes(port):
    return port.attr("carrier_changes")


@ksft_disruptive
def replaced_without_loss(cfg):
    """ Programs are replaced while frames pass, none of which is lost. """
    port, programs = cfg.ports[0], [cfg.programs.add(XDP_PASS) for _ in range(2)]
    cfg.settle()
    attached(cfg, XDP_PASS)
    flaps = carrier_changes(port)

    def replace():
        for number in range(rounds(cfg, 30, 4)):
            attach(port, programs[number % 2])

    with beside(replace) as replacing:
        while replacing.is_alive():
            cfg.check_forwarded(2000)
    ksft_eq(carrier_changes(port), flaps, "changes of the carrier")


@ksft_disruptive
def attached_under_traffic(cfg):
    """ Programs come and go under traffic over all queues, and the link stays up. """
    cfg.start_traffic(flows=64)
    flaps = [carrier_changes(port) for port in cfg.ports]
    for _ in range(rounds(cfg, 10, 2)):
        for port in cfg.ports:
            attach(port, cfg.programs.add(XDP_PASS))
        for port in cfg.ports:
            detach(port)
            # Back to the buffers of before.
            for queue in range(cfg.queues):
                restart_rx_queue(port.ifindex(), queue)
    ksft_eq([carrier_changes(port) for port in cfg.ports], flaps, "changes of the carrier")


@ksft_disruptive
def settings_with_a_program(cfg):
    """ A port that gets other rings and queues, or goes down and up, keeps its program. """
    port = cfg.ports[0]
    attached(cfg, XDP_DROP)
    for change in (f"ethtool -G {port.ifname} rx 128", f"ethtool -G {port.ifname} rx 512",
                   f"ethtool -L {port.ifname} combined 1",
                   f"ethtool -L {port.ifname} combined {cfg.queues}",
                   f"ip link set {port.ifname} mtu {MAX_MTU}",
                   f"ip link set {port.ifname} mtu 1500",
                   f"ip link set {port.ifname} down"):
        cmd(change)
        cfg.set_up()
        before = counts(cfg)[1]
        # The shortest ring has room for all of them.
        cfg.generate(100, drain_ms=50)
        ksft_eq(counts(cfg)[1] - before, 100, change)


@ksft_disruptive
def detached_with_longer_frames(cfg):
    """ A program that is gone leaves no limit to the MTU. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu 2000")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()
    attach(cfg.ports[0], cfg.programs.add(XDP_PASS))
    detach(cfg.ports[0])
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu 9000")
    cfg.set_up()
    cfg.settle()
    cfg.check_forwarded(FRAMES, 9014)


@ksft_disruptive
def too_long(cfg):
    """ With most programs, frames are no longer than a buffer, and the user gets to know. """
    port, program = cfg.ports[0], cfg.programs.add(XDP_PASS)
    ip(f"link set {port.ifname} mtu {MAX_MTU + 1}")
    defer(ip, f"link set {port.ifname} mtu 1500")
    with ksft_raises(CmdExitFailure) as raised:
        attach(port, program)
    ksft_in(f"the MTU is more than {MAX_MTU}", str(raised.exception))
    ip(f"link set {port.ifname} mtu {MAX_MTU}")
    attach(port, program)
    defer(detach, port)
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
        attach(port, program)
    ksft_in("LRO is on", str(raised.exception))
    ethtool(f"-K {port.ifname} lro off")
    attach(port, program)
    defer(detach, port)
    cmd(f"ethtool -K {port.ifname} lro on", fail=False)
    ksft_eq(_lro(port), False)


def run(path, cases, drivers=("ixgbe_rust", )):
    """ Run cases on ports with all queues, and programs with names. """
    with NicModelEnv(path, drivers, f"XDP in {' and '.join(drivers)}") as cfg:
        cfg.netnl, cfg.programs = NetdevFamily(), Programs()
        cfg.queues = min(os.cpu_count(), 16)
        try:
            cfg.set_up()
            for port in cfg.ports:
                cmd(f"ethtool -L {port.ifname} combined {cfg.queues}", fail=False)
            cfg.set_up()
            ksft_run(judged(cases), args=(cfg, ))
        finally:
            cfg.programs.close()
            for port in cfg.ports:
                cmd(f"ethtool -L {port.ifname} combined 1", fail=False)
    ksft_exit()


def main():
    """ Ksft boiler plate main """

    run(__file__, [refused, passed, passed_jumbo, in_the_stack, moved, metadata, tag_kept, hints,
                   sent_back, restarted_while_sending, link_lost_while_sending,
                   closed_while_sending, lost_is_counted, forwards_after("sending"), redirected,
                   target_goes_away, forwards_after("redirecting"), replaced_without_loss,
                   forwards_after("replacing"), attached_under_traffic,
                   traffic_intact("attaching"), forwards_after("attaching"),
                   settings_with_a_program, detached_with_longer_frames, too_long, no_lro,
                   forwards_after("all")])


if __name__ == "__main__":
    main()
