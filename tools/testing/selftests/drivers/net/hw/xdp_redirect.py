#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Frames that XDP programs redirect to a port, which has no program of its own: from the other port,
from itself, and from interfaces of no card, while ports come and go.
"""

import socket
import struct

from lib.py import KsftNamedVariant, defer, ethtool, ip, ksft_disruptive, ksft_eq, ksft_in, ksft_lt
from lib.py import ksft_variants
from lib.py.bpf import redirect_program
from lib.py.nicmodel import PEERS, forwards_after
from lib.py.support import driver_stats, netdev_stat, restart_rx_queue, rounds, wait_until
from xdp_verdicts import ETH_P_TEST, FRAMES, PEER, attach, attach_for_now, carrier_changes, run
from xdp_verdicts import veth

MTU = 9000
HEADER = 14
# The bytes that the card writes to a buffer.
BUFFER = 3072


def _counts(port):
    stats = driver_stats(port.ifname)
    return [stats[f"tx_xdp_{name}"] for name in ("packets", "bytes", "refused", "lost",
                                                 "doorbells")]


def _across(cfg):
    """ Return the fields of a request for frames that leave by port 1 as they were. """
    return {"expect_ttl": 64, "expect_src_mac": PEERS[0], "expect_dst_mac": cfg.ports[0].mac()}


def _redirect(cfg, target=None, **kwargs):
    """ Redirect frames of port 0 to port 1, or to another interface, until the case ends. """
    target = target or cfg.ports[1]
    attach_for_now(cfg, cfg.programs.name(redirect_program(target.ifindex(), **kwargs)))


def _check_across(cfg, count=FRAMES, size=60):
    """ Check that frames leave by port 1, as they were. """
    cfg.check_forwarded(count, size, **_across(cfg))


def _longer(cfg):
    """ Let frames take several buffers until the case ends. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu {MTU}")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()


def features(cfg):
    """ Users can find out that frames can be redirected to a port. """
    dev = cfg.netnl.dev_get({"ifindex": cfg.ports[1].ifindex()})
    for feature in ("redirect", "ndo-xmit", "ndo-xmit-sg"):
        ksft_in(feature, dev["xdp-features"])


@ksft_variants((60, 128, 1514))
def redirected(cfg, size):
    """ Frames leave by the other port whole and in order, and are counted. """
    port = cfg.ports[1]
    cfg.settle()
    _redirect(cfg)
    before = _counts(port)
    packets, sent = port.stat("tx_packets"), port.stat("tx_bytes")
    _check_across(cfg, FRAMES, size)
    # The card reports frames after they have left.
    wait_until(lambda: _counts(port)[0] - before[0] >= FRAMES, 10, "all frames are counted")
    now = [now - was for now, was in zip(_counts(port), before, strict=True)]
    ksft_eq(now[:4], [FRAMES, FRAMES * size, 0, 0])
    # The stack may send a packet of its own meanwhile.
    ksft_in(port.stat("tx_packets") - packets - FRAMES, range(10))
    ksft_in(port.stat("tx_bytes") - sent - FRAMES * size, range(2000))
    # Several frames share a doorbell.
    ksft_lt(now[4], FRAMES)


@ksft_variants((60, BUFFER, BUFFER + 1, 2 * BUFFER, MTU + HEADER))
def several_buffers(cfg, size):
    """ So do frames in several buffers. """
    _longer(cfg)
    cfg.settle()
    _redirect(cfg, frags=True)
    before = _counts(cfg.ports[1])[2]
    _check_across(cfg, FRAMES, size)
    ksft_eq(_counts(cfg.ports[1])[2], before, "refused")


@ksft_variants((60, 1514))
def to_itself(cfg, size):
    """ Frames leave by the port that receives them, from within the loop that does. """
    port = cfg.ports[0]
    cfg.settle()
    _redirect(cfg, port)
    before = _counts(port)
    cfg.check_forwarded(FRAMES, size, **_across(cfg), to=0)
    wait_until(lambda: _counts(port)[0] - before[0] >= FRAMES, 10, "all frames are counted")
    ksft_eq(_counts(port)[2], before[2], "refused")


def both_ways(cfg):
    """ Frames go in both directions at the same time. """
    cfg.settle()
    _redirect(cfg)
    program = cfg.programs.name(redirect_program(cfg.ports[0].ifindex()))
    attach(cfg.ports[1], program)
    defer(ip, f"link set {cfg.ports[1].ifname} xdpdrv off")
    cfg.start_traffic(flows=64, **_across(cfg))
    for _ in range(rounds(cfg, 10, 3)):
        cfg.check_forwarded(FRAMES, port=1, expect_ttl=64, expect_src_mac=PEERS[1],
                            expect_dst_mac=cfg.ports[1].mac())
    cfg.check_traffic()


@ksft_variants([KsftNamedVariant("shortest", 14), KsftNamedVariant("ordinary", 60),
                KsftNamedVariant("longest", 1514)])
def from_elsewhere(cfg, size):
    """ Memory of any sort is sent: that of packets which a pair of interfaces has passed on. """
    port = cfg.ports[1]
    into, out = veth()
    attach(out, cfg.programs.name(redirect_program(port.ifindex())))
    before = _counts(port)
    frame = PEER + bytes(6) + struct.pack("!H", ETH_P_TEST) + bytes(size - HEADER)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((into.ifname, 0))
        for _ in range(100):
            sock.send(frame)
    wait_until(lambda: _counts(port)[0] - before[0] >= 100, 10, "all frames are sent")
    now = [now - was for now, was in zip(_counts(port), before, strict=True)]
    # The card sends none that are shorter.
    ksft_eq(now[:4], [100, 100 * max(size, 17), 0, 0])


@ksft_disruptive
def source_restarted(cfg):
    """ Queues get other memory while frames in what they had before are on their way. """
    cfg.settle()
    _redirect(cfg)
    flaps = [carrier_changes(port) for port in cfg.ports]
    cfg.start_traffic(flows=64, **_across(cfg))
    for _ in range(rounds(cfg, 20, 3)):
        for queue in range(cfg.queues):
            restart_rx_queue(cfg.ports[0].ifindex(), queue)
    cfg.check_traffic()
    ksft_eq([carrier_changes(port) for port in cfg.ports], flaps, "changes of the carrier")
    _check_across(cfg)


@ksft_disruptive
def target_changed(cfg):
    """ The target goes down and up, and gets other rings and queues, under traffic. """
    port = cfg.ports[1]
    cfg.settle()
    _redirect(cfg)
    defer(ethtool, f"-G {port.ifname} tx 512")
    cfg.start_traffic(flows=64, stall_ms=100, **_across(cfg))
    for number in range(rounds(cfg, 10, 2)):
        ip(f"link set {port.ifname} down")
        ip(f"link set {port.ifname} up")
        ethtool(f"-G {port.ifname} tx {64 << number % 4}")
        for queues in {1, cfg.queues}:
            ethtool(f"-L {port.ifname} combined {queues}")
        cfg.card.wait_up()
    cfg.check_traffic()
    # With room for all frames that are under way at a time.
    ethtool(f"-G {port.ifname} tx 512")
    cfg.set_up()
    _check_across(cfg)


@ksft_disruptive
def source_changed(cfg):
    """ The source goes down and up, while frames in its memory are on their way. """
    port = cfg.ports[0]
    cfg.settle()
    _redirect(cfg)
    cfg.start_traffic(flows=64, stall_ms=100, **_across(cfg))
    for _ in range(rounds(cfg, 10, 2)):
        ip(f"link set {port.ifname} down")
        ip(f"link set {port.ifname} up")
        cfg.card.wait_up()
    cfg.check_traffic()
    cfg.set_up()
    _check_across(cfg)


@ksft_disruptive
def link_lost(cfg):
    """ The target loses its link with frames that were not sent, and gets it back. """
    defer(cfg.model.link, 1)
    cfg.settle()
    _redirect(cfg)
    for _ in range(rounds(cfg, 6, 2)):
        cfg.start_traffic(flows=64, stall_ms=100, **_across(cfg))
        cfg.traffic.flows()
        cfg.model.link(1, up=False)
        cfg.model.link(1)
        cfg.card.wait_up()
        cfg.check_traffic()
        _check_across(cfg)


@ksft_disruptive
def target_unbound(cfg):
    """ The target goes away under traffic, and comes back. """
    port = cfg.ports[1]
    for _ in range(rounds(cfg, 4, 1)):
        cfg.settle()
        attach(cfg.ports[0], cfg.programs.name(redirect_program(port.ifindex())))
        cfg.start_traffic(flows=64, stall_ms=100, **_across(cfg))
        cfg.traffic.flows()
        port.unbind()
        port.bind(cfg.driver)
        cfg.card.find()
        ip(f"link set {cfg.ports[0].ifname} xdpdrv off")
        # Those of before have come out.
        traffic, cfg.traffic = cfg.traffic, None
        traffic.stop(0)
        cfg.set_up()


@ksft_disruptive
def too_many(cfg):
    """ A target that does not send takes what there is room for, and goes on later. """
    port = cfg.ports[1]
    cfg.settle()
    _redirect(cfg)
    before = _counts(port)
    dropped = netdev_stat(port.ifname, "tx_dropped")
    cfg.model.fault(1, "tx_no_done", 100_000)
    cfg.generate(4 * FRAMES, timeout_ms=4000, stall_ms=200, drain_ms=50)
    wait_until(lambda: _counts(port)[2] > before[2], 10, "frames are refused")
    ksft_lt(dropped, netdev_stat(port.ifname, "tx_dropped"))
    cfg.model.mend(1)
    ip(f"link set {port.ifname} down")
    ksft_lt(before[3], _counts(port)[3], "lost")
    ip(f"link set {port.ifname} up")
    cfg.set_up()
    _check_across(cfg)


def main():
    """ Ksft boiler plate main """

    run(__file__, [features, redirected, several_buffers, to_itself, both_ways, from_elsewhere,
                   forwards_after("redirecting"), source_restarted, target_changed,
                   source_changed, forwards_after("changes"), link_lost, target_unbound, too_many,
                   forwards_after("all")])


if __name__ == "__main__":
    main()
