#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
VLANs: tags that the device inserts and strips, and its filter.
"""

import contextlib
import os
import socket
import struct
from pathlib import Path

from lib.py import EthtoolFamily, KsftNamedVariant, KsftSkipEx, KsftXfailEx, cmd, defer, ethtool, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import SOL_PACKET, beside, driver_stats, repeated, skip_program
from lib.py.support import wait_until
from flow_rules import channels, set_channels
from tcp_stream import transfer

ETH_P_ALL = 3
ETH_P_TEST = 0x88b5
PACKET_AUXDATA = 8
VLAN_VALID = 1 << 4
ID, OTHER_ID, PRIORITY = 100, 101, 5
FRAMES, CHANGES = 20, 20
SOURCE = bytes.fromhex("020000000002")
PLAIN = struct.pack("!H", ETH_P_TEST) + bytes(100)
ADDRESSES = ("10.9.100.1", "10.9.100.2")


def _add_vlan(cfg, number=ID):
    ip(f"link add link {cfg.ifname} name ksft-vlan type vlan id {number}")
    ip("link set ksft-vlan up")
    defer(ip, "link del ksft-vlan")


def _add_both(cfg):
    """ Set up an interface of the VLAN at both ends. """
    _add_vlan(cfg)
    ip(f"addr add {ADDRESSES[0]}/24 dev ksft-vlan")
    ip(f"link add link {cfg.remote_ifname} name ksft-vlan type vlan id {ID}", host=cfg.remote)
    defer(ip, "link del ksft-vlan", host=cfg.remote)
    ip("link set ksft-vlan up", host=cfg.remote)
    ip(f"addr add {ADDRESSES[1]}/24 dev ksft-vlan", host=cfg.remote)


def _add_both_stacked(cfg, outer):
    """ Set up an interface of a VLAN within a VLAN at both ends. """
    for dev, address, host in ((cfg.ifname, ADDRESSES[0], None),
                               (cfg.remote_ifname, ADDRESSES[1], cfg.remote)):
        ip(f"link add link {dev} name ksft-vlan type vlan proto {outer} id {ID}", host=host)
        defer(ip, "link del ksft-vlan", host=host)
        ip("link set ksft-vlan up", host=host)
        ip(f"link add link ksft-vlan name ksft-inner type vlan id {OTHER_ID}", host=host)
        # Both tags are in a frame of the port's MTU.
        ip("link set ksft-inner up mtu 1400", host=host)
        ip(f"addr add {address}/24 dev ksft-inner", host=host)


def _know_each_other(cfg):
    """ No end asks for an address: the packets that are counted are those of the case. """
    cfg.know_each_other()
    for address, mac, host in ((ADDRESSES[1], cfg.remote_dev["address"], None),
                               (ADDRESSES[0], cfg.dev["address"], cfg.remote)):
        ip(f"neigh replace {address} lladdr {mac} dev ksft-vlan nud permanent", host=host)


def _offload(cfg, insert, strip):
    ethtool(f"-K {cfg.ifname} txvlan {insert} rxvlan {strip}")
    defer(ethtool, f"-K {cfg.ifname} txvlan on rxvlan on")


def _sent_last(cfg):
    """ Return the bytes that the driver has not taken back from the device yet. """
    paths = Path(f"/sys/class/net/{cfg.ifname}/queues").glob("tx-*/byte_queue_limits/inflight")
    return sum(int(path.read_text(encoding="ascii")) for path in paths)


def _counted(cfg, way, count, run):
    """
    Call @run, which makes so many packets go the given @way, "rx" or "tx".

    Return its result and the bytes of the packets.
    """
    def counts():
        stats = driver_stats(cfg.ifname)
        return [stats[f"{way}_{unit}"] for unit in ("packets", "bytes")]

    cfg.require_driver("ixgbe_rust", why="looks at counters of ixgbe_rust")
    # A packet that is sent counts when the driver takes it back.
    wait_until(lambda: not _sent_last(cfg), 60, "all packets from before are sent", 0.02)
    packets, size = counts()
    result = run()
    wait_until(lambda: counts()[0] - packets >= count, 60, f"{count} {way} packets", 0.02)
    now = counts()
    ksft_eq(now[0] - packets, count, f"{way} packets, none of others among them")
    return result, now[1] - size


@ksft_variants([KsftNamedVariant(f"insert_{insert}_strip_{strip}", insert, strip)
                for insert in ("on", "off") for strip in ("on", "off")])
def reach(cfg, insert, strip):
    """ The ends reach each other in a VLAN. """
    _offload(cfg, insert, strip)
    _add_both(cfg)
    for size in (0, 56, 1472, 8000):
        cmd(f"ping -q -c 3 -i 0.05 -W 2 -s {size} {ADDRESSES[1]}")


def insert(cfg):
    """ The device inserts the tag: the driver maps four bytes less. """
    _add_both(cfg)
    _know_each_other(cfg)
    cmd(f"ping -q -c 1 -W 60 {ADDRESSES[1]}")
    defer(ethtool, f"-K {cfg.ifname} txvlan on")
    sent = {}
    for state in ("on", "off"):
        ethtool(f"-K {cfg.ifname} txvlan {state}")
        _, sent[state] = _counted(cfg, "tx", FRAMES, lambda: cmd(
            f"ping -q -c {FRAMES} -i 0.02 -W 2 -s 200 {ADDRESSES[1]}"))
    ksft_eq(sent["off"] - sent["on"], 4 * FRAMES, "bytes less")


def _stream(cfg):
    """ Transfer a stream by TCP, and check that the device has split it. """
    cfg.remote_addr_v, was = {**cfg.remote_addr_v, "4": ADDRESSES[1]}, cfg.remote_addr_v
    cfg.require_driver("ixgbe_rust", why="looks at counters of ixgbe_rust")
    before = driver_stats(cfg.ifname).get("tx_gso_packets", 0)
    try:
        transfer(cfg, 10_000_000, "sendfile")
    finally:
        cfg.remote_addr_v = was
    ksft_ge(driver_stats(cfg.ifname).get("tx_gso_packets", 0) - before, 50)


def stream(cfg):
    """ A TCP stream in a VLAN arrives as it was sent; the device splits and tags it. """
    _add_both(cfg)
    _stream(cfg)


@ksft_variants(["802.1Q", "802.1ad"])
def stream_with_two_tags(cfg, outer):
    """ The same in a VLAN within a VLAN: whether it is split is up to the driver. """
    _add_both_stacked(cfg, outer)
    _stream(cfg)


def _frame(cfg, number, payload=PLAIN):
    """ A frame of a VLAN for the device. """
    mac = bytes.fromhex(cfg.dev["address"].replace(":", ""))
    return mac + SOURCE + struct.pack("!HH", 0x8100, PRIORITY << 13 | number) + payload


def _tags(data, auxiliary):
    """ The tags of a frame beside it and in it, or None if it is not one of _frame(). """
    tags = [tag for _, kind, value in auxiliary if kind == PACKET_AUXDATA
            for status, *_, tag, _ in [struct.unpack("=IIIHHHH", value)]
            if status & VLAN_VALID]
    kind, tag = struct.unpack("!HH", data[12:16])
    if data[6:12] != SOURCE:
        return None
    return [*tags, tag] if kind == 0x8100 else tags


@contextlib.contextmanager
def _sniffer(cfg):
    """ A socket that gets all frames of the interface, with their tags beside them. """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as sock:
        sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        sock.bind((cfg.ifname, ETH_P_ALL))
        sock.settimeout(0.5)
        yield sock


def _receive(cfg, number):
    """ Inject tagged frames, and one without a tag; return the tags of those that arrive. """
    frame = _frame(cfg, number)
    tags = []
    with _sniffer(cfg) as sock:
        sock.settimeout(60)
        for _ in range(FRAMES):
            cfg.inject(frame)
        cfg.inject(frame[:12] + PLAIN)
        # It is the last one of a single queue.
        while (found := _tags(*sock.recvmsg(200, 100)[:2])) != []:
            tags += found or []
    return tags


def strip(cfg):
    """ The device strips the tag, and the stack still gets it. """
    _add_vlan(cfg)
    cfg.know_each_other()
    seen = {}
    for state in ("off", "on"):
        ethtool(f"-K {cfg.ifname} rxvlan {state}")
        tags, seen[state] = _counted(cfg, "rx", FRAMES + 1, lambda: _receive(cfg, ID))
        ksft_eq(tags, [PRIORITY << 13 | ID] * FRAMES, f"stripping {state}")
    ksft_eq(seen["off"] - seen["on"], 4 * FRAMES, "bytes less")


def _seen_while(cfg, changes):
    """
    Have tagged frames arrive all the time while the features of the device change.

    Return how many frames arrived with their tag, and how many otherwise: without it, as if
    they were no VLAN's, or with two.
    """
    frame = _frame(cfg, ID, _datagram())
    good = bad = 0

    def change():
        for args in changes:
            ethtool(f"-K {cfg.ifname} {args}")

    with _sniffer(cfg) as sock, repeated(cfg.inject, frame), beside(change) as changing:
        while changing.is_alive():
            try:
                tags = _tags(*sock.recvmsg(200, 100)[:2])
            except TimeoutError:
                # The link is coming up.
                continue
            if tags is not None:
                good += tags == [PRIORITY << 13 | ID]
                bad += tags != [PRIORITY << 13 | ID]
    return good, bad


def _datagram():
    """ An IPv4 packet of UDP, which is hashed. """
    return struct.pack("!HBBHHHBBH4s4sHHHH", 0x0800, 0x45, 0, 128, 1, 0, 64, 17, 0,
                       bytes([10, 9, 101, 2]), bytes([10, 9, 101, 1]),
                       1000, 9, 108, 0) + bytes(100)


@ksft_variants([
    KsftNamedVariant("alone", ("rxvlan off", "rxvlan on")),
    KsftNamedVariant("with_rings", ("rxvlan off lro on", "rxvlan on lro off")),
])
def strip_while_it_changes(cfg, change):
    """ No frame is taken for one without a VLAN while stripping is turned on or off. """
    if os.cpu_count() < 2 or channels(cfg).get("combined-max", 0) < 2:
        raise KsftSkipEx("needs two queues")
    cfg.require_feature("rx-vlan-offload")
    if "lro on" in " ".join(change):
        cfg.require_feature("large-receive-offload")
    if cfg.driver == "ixgbe":
        raise KsftXfailEx("it goes by the feature's flag, which changes before the queues do")
    _add_vlan(cfg)
    # The queue that is told last.
    set_channels(cfg, 2)
    defer(set_channels, cfg, 1)
    ethtool(f"-X {cfg.ifname} start 1 equal 1")
    defer(ethtool, f"-X {cfg.ifname} default")
    defer(ethtool, f"-K {cfg.ifname} lro off rxvlan on")
    good, bad = _seen_while(cfg, change * CHANGES)
    ksft_eq(bad, 0, "frames with other tags")
    ksft_ge(good, CHANGES, "frames with their tag")


def strip_keeps_the_link(cfg):
    """ The carrier stays while stripping is turned on and off. """
    cfg.wait_up()
    changes = Path(f"/sys/class/net/{cfg.ifname}/carrier_changes")
    before = changes.read_text()
    defer(ethtool, f"-K {cfg.ifname} rxvlan on")
    for state in ("off", "on"):
        ethtool(f"-K {cfg.ifname} rxvlan {state}")
    ksft_eq(changes.read_text(), before, "changes of the carrier")


def _check_arrive(cfg, expected, number=ID):
    ksft_eq(len(_receive(cfg, number)), expected, f"frames of VLAN {number}")


def filter_member(cfg):
    """ Frames of a VLAN arrive while there is an interface for it. """
    cfg.require_feature("rx-vlan-filter")
    _check_arrive(cfg, 0)
    ip(f"link add link {cfg.ifname} name ksft-vlan type vlan id {ID}")
    _check_arrive(cfg, FRAMES)
    _check_arrive(cfg, 0, OTHER_ID)
    ip("link del ksft-vlan")
    _check_arrive(cfg, 0)


def filter_promiscuous(cfg):
    """ Frames of all VLANs arrive in promiscuous mode, and not after it. """
    cfg.require_feature("rx-vlan-filter")
    ip(f"link set {cfg.ifname} promisc on")
    _check_arrive(cfg, FRAMES)
    ip(f"link set {cfg.ifname} promisc off")
    _check_arrive(cfg, 0)


def filter_off(cfg):
    """ Frames of all VLANs arrive without the filter, at once. """
    cfg.require_feature("rx-vlan-filter")
    ethtool(f"-K {cfg.ifname} rx-vlan-filter off")
    defer(ethtool, f"-K {cfg.ifname} rx-vlan-filter on")
    _check_arrive(cfg, FRAMES)
    ethtool(f"-K {cfg.ifname} rx-vlan-filter on")
    _check_arrive(cfg, 0)


@ksft_disruptive
def filter_survives(cfg):
    """ The VLANs are those of before after down and up, and those added meanwhile. """
    cfg.require_feature("rx-vlan-filter")
    _add_vlan(cfg, OTHER_ID)
    _check_arrive(cfg, FRAMES, OTHER_ID)
    ip(f"link set {cfg.ifname} down")
    ip(f"link add link {cfg.ifname} name ksft-other type vlan id {ID}")
    defer(ip, "link del ksft-other")
    ip(f"link set {cfg.ifname} up")
    cfg.wait_up()
    _check_arrive(cfg, FRAMES, OTHER_ID)
    _check_arrive(cfg, FRAMES, ID)
    _check_arrive(cfg, 0, ID + 2)


@ksft_disruptive
def priority_tagged(cfg):
    """ Frames with a priority and no VLAN arrive, even if the stack has not asked for them. """
    cfg.require_feature("rx-vlan-filter")
    _check_arrive(cfg, FRAMES, 0)
    ip(f"link set {cfg.ifname} down")
    # This module asks for them whenever an interface comes up.
    if os.path.exists("/sys/module/8021q/initstate"):
        cmd("rmmod 8021q")
    ip(f"link set {cfg.ifname} up")
    cfg.wait_up()
    _check_arrive(cfg, FRAMES, 0)
    _check_arrive(cfg, 0)


def main():
    """ Ksft boiler plate main """

    cmd("modprobe -q 8021q", fail=False)
    if not os.path.exists("/proc/net/vlan"):
        skip_program("the kernel has no VLANs")
    with PeerEnv(__file__, v6=False) as cfg:
        cfg.ethnl = EthtoolFamily()
        ksft_run(cfg.judged([reach, insert, stream, stream_with_two_tags, strip,
                             strip_while_it_changes, strip_keeps_the_link, filter_member,
                             filter_promiscuous, filter_off, filter_survives,
                             priority_tagged]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
