#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Which frames the device lets in: its MAC address, multicast groups, all
multicast, promiscuous mode, further unicast addresses.
"""

import contextlib
import socket
import struct
import time

from lib.py import CmdExitFailure, KsftNamedVariant, KsftSkipEx
from lib.py import cmd, defer, ip, ksft_disruptive, ksft_eq, ksft_exit
from lib.py import ksft_raises, ksft_run, ksft_variants
from lib.py.nicmodel import NicModelEnv, forwards_after

BROADCAST = "ff:ff:ff:ff:ff:ff"
OTHER = "02:00:00:00:77:77"
GROUP = "01:00:5e:01:02:03"
FRAMES = 20
# More than any list of the card holds.
GROUPS = 200

SOL_PACKET = 263
PACKET_ADD_MEMBERSHIP = 1
PACKET_MR_MULTICAST = 0


def set_up(cfg):
    """ Addresses, routes, neighbours, and both links. """
    cfg.set_up()
    cfg.own = cfg.ports[0].mac()


def _in_effect(cfg):
    """
    Lists of addresses are applied from a workqueue, which any change of the
    link overtakes; what was written to registers has arrived when others have
    been read.
    """
    ip(f"link set {cfg.ifname} up")
    cmd(f"ethtool -S {cfg.ifname}")


def _check_arrive(cfg, expected, mac):
    """ How many frames to an address reach the stack. """
    _in_effect(cfg)
    port = cfg.ports[0]
    # An experimental EtherType: nothing answers to it.
    frame = bytes.fromhex(mac.replace(":", "") + "02000000000288b5") + bytes(46)
    before = port.stat("rx_packets")
    for _ in range(FRAMES):
        cfg.model.inject(0, frame)
    end = time.monotonic() + (3 if expected else 0.5)
    while time.monotonic() < end:
        if expected and port.stat("rx_packets") - before >= expected:
            break
        time.sleep(0.05)
    ksft_eq(port.stat("rx_packets") - before, expected, f"frames to {mac}")


@ksft_variants([
    KsftNamedVariant("own", None, FRAMES),
    KsftNamedVariant("broadcast", BROADCAST, FRAMES),
    KsftNamedVariant("other", OTHER, 0),
    KsftNamedVariant("group_not_joined", GROUP, 0),
])
def address(cfg, mac, expected):
    """ Without further ado. """
    _check_arrive(cfg, expected, mac or cfg.own)


def _promiscuous(cfg):
    ip(f"link set {cfg.ifname} promisc on")
    defer(ip, f"link set {cfg.ifname} promisc off")


def promiscuous(cfg):
    """ Everything comes in. """
    _promiscuous(cfg)
    _check_arrive(cfg, FRAMES, OTHER)


def promiscuous_no_more(cfg):
    """ The filter is back. """
    _check_arrive(cfg, 0, OTHER)


def _join(cfg, mac=GROUP):
    ip(f"maddr add {mac} dev {cfg.ifname}")
    defer(ip, f"maddr del {mac} dev {cfg.ifname}")


def group_joined(cfg):
    """ A multicast group. """
    _join(cfg)
    _check_arrive(cfg, FRAMES, GROUP)


def group_left(cfg):
    """ It was left after the case before. """
    _check_arrive(cfg, 0, GROUP)


def _down_and_up(cfg):
    for state in ("down", "up"):
        ip(f"link set {cfg.ifname} {state}")
    cfg.card.wait_up()


@ksft_disruptive
def group_survives(cfg):
    """ A group is still received after down and up. """
    _join(cfg)
    _down_and_up(cfg)
    _check_arrive(cfg, FRAMES, GROUP)


@ksft_disruptive
def promiscuous_survives(cfg):
    """ Every frame is still received after down and up. """
    _promiscuous(cfg)
    _down_and_up(cfg)
    _check_arrive(cfg, FRAMES, OTHER)


def _all_multicast(cfg):
    ip(f"link set {cfg.ifname} allmulticast on")
    defer(ip, f"link set {cfg.ifname} allmulticast off")


def all_multicast_group(cfg):
    """ Any group. """
    _all_multicast(cfg)
    _check_arrive(cfg, FRAMES, GROUP)


def all_multicast_other(cfg):
    """ Unicast is still filtered. """
    _all_multicast(cfg)
    _check_arrive(cfg, 0, OTHER)


def all_multicast_no_more(cfg):
    """ Groups are filtered again. """
    _check_arrive(cfg, 0, GROUP)


def _group(number):
    return bytes((1, 0, 0x5E, 2, number >> 8, number & 255))


def _text(mac):
    return ":".join(f"{byte:02x}" for byte in mac)


@ksft_disruptive
def groups_joined(cfg):
    """ By link-layer address, until the socket is closed. """
    cfg.holder = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    for number in range(1, GROUPS + 1):
        mac = _group(number)
        request = struct.pack("=iHH8s", cfg.ifindex, PACKET_MR_MULTICAST,
                              len(mac), mac)
        cfg.holder.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, request)


@ksft_variants([100, GROUPS])
def groups_one_of_many(cfg, number):
    """ One of them, wherever the card keeps it. """
    _check_arrive(cfg, FRAMES, _text(_group(number)))


def groups_left(cfg):
    """ All of them. """
    cfg.holder.close()
    _check_arrive(cfg, 0, _text(_group(100)))


def _fdb(cfg, verb):
    cmd(f"bridge fdb {verb} {OTHER} dev {cfg.ifname}")


def second_unicast(cfg):
    """ As a bridge or macvlan would ask for. """
    try:
        _fdb(cfg, "add")
    except CmdExitFailure as error:
        raise KsftSkipEx("bridge fdb add is not possible here") from error
    defer(_fdb, cfg, "del")
    _check_arrive(cfg, FRAMES, OTHER)


def second_unicast_gone(cfg):
    """ It was removed after the case before. """
    _check_arrive(cfg, 0, OTHER)


@ksft_disruptive
def new_address(cfg):
    """ The interface shows it. """
    ip(f"link set {cfg.ifname} address {OTHER}")
    ksft_eq(cfg.ports[0].mac(), OTHER)


def new_address_frames(cfg):
    """ Frames to it. """
    _check_arrive(cfg, FRAMES, OTHER)


def old_address_frames(cfg):
    """ Frames to the one before. """
    _check_arrive(cfg, 0, cfg.own)


@ksft_variants([
    KsftNamedVariant("multicast", "01:00:00:00:00:01"),
    KsftNamedVariant("zeros", "00:00:00:00:00:00"),
])
def address_refused(cfg, mac):
    """ What is no address of a device. """
    with ksft_raises(CmdExitFailure):
        ip(f"link set {cfg.ifname} address {mac}")
    ksft_eq(cfg.ports[0].mac(), OTHER)


@ksft_disruptive
def new_address_survives(cfg):
    """ The interface has the new address after down and up. """
    _down_and_up(cfg)
    ksft_eq(cfg.ports[0].mac(), OTHER)


def new_address_survives_frames(cfg):
    """ Frames to the new address arrive after down and up. """
    _check_arrive(cfg, FRAMES, OTHER)


@ksft_disruptive
def old_address_again(cfg):
    """ It can be set again. """
    ip(f"link set {cfg.ifname} address {cfg.own}")
    ksft_eq(cfg.ports[0].mac(), cfg.own)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        cfg.holder = None
        with contextlib.ExitStack() as at_end:
            at_end.callback(lambda: cfg.holder and cfg.holder.close())
            ksft_run([set_up, address, promiscuous, promiscuous_no_more,
                      group_joined, group_left, all_multicast_group,
                      all_multicast_other, all_multicast_no_more,
                      group_survives, promiscuous_survives,
                      groups_joined, groups_one_of_many,
                      groups_left, second_unicast, second_unicast_gone,
                      new_address, new_address_frames, old_address_frames,
                      forwards_after("new_address"), address_refused,
                      new_address_survives, new_address_survives_frames,
                      old_address_again,
                      forwards_after("old_address")], args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
