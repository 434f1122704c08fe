#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Receive filters: MAC address, multicast groups, all-multicast and promiscuous
mode, further unicast addresses.
"""

import contextlib
import socket
import struct

from lib.py import CmdExitFailure, KsftNamedVariant, KsftSkipEx
from lib.py import cmd, defer, ip, ksft_disruptive, ksft_eq, ksft_exit
from lib.py import ksft_raises, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import SOL_PACKET, frames_since, repeated, wait_until

BROADCAST = "ff:ff:ff:ff:ff:ff"
OTHER = "02:00:00:00:77:77"
GROUP = "01:00:5e:01:02:03"
FRAMES = 20
# Enough that some arrive while the filters change.
OTHERS = 1000
# More than any filter table of the card holds.
GROUPS = 200

# Experimental: nothing answers to them.
ETH_P_TEST, ETH_P_LAST = 0x88b5, 0x88b6
PACKET_ADD_MEMBERSHIP = 1
PACKET_MR_MULTICAST = 0


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()
    cfg.own = cfg.ports[0].mac()


def _in_effect(cfg):
    """
    Wait until the filters have taken effect. A workqueue applies address
    lists, unless a change of the link does so first; reading registers flushes
    writes.
    """
    ip(f"link set {cfg.ifname} up")
    cmd(f"ethtool -S {cfg.ifname}")


def _listen(cfg, protocol):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    sock.bind((cfg.ifname, protocol))
    return sock


def _frame(mac, protocol):
    return bytes.fromhex(mac.replace(":", "") + "020000000002") \
        + struct.pack("!H", protocol) + bytes(46)


def _check_arrive(cfg, expected, mac, count=FRAMES):
    """
    Check how many of some frames to an address reach the stack, until one behind them does that
    every filter lets through.
    """
    _in_effect(cfg)
    # Sockets of protocols: counters of the port have the frames of neighbours too.
    with _listen(cfg, ETH_P_TEST) as sock, _listen(cfg, ETH_P_LAST) as last:
        for _ in range(count):
            cfg.model.inject(0, _frame(mac, ETH_P_TEST))
        cfg.model.inject(0, _frame(BROADCAST, ETH_P_LAST))
        wait_until(lambda: frames_since(last), 10, "the last frame arrives")
        ksft_eq(frames_since(sock), expected, f"frames to {mac}")


@ksft_variants([
    KsftNamedVariant("own", None, FRAMES),
    KsftNamedVariant("broadcast", BROADCAST, FRAMES),
    KsftNamedVariant("other", OTHER, 0),
    KsftNamedVariant("group_not_joined", GROUP, 0),
])
def address(cfg, mac, expected):
    """ Frames to this address are received or filtered. """
    _check_arrive(cfg, expected, mac or cfg.own)


def _promiscuous(cfg):
    ip(f"link set {cfg.ifname} promisc on")
    defer(ip, f"link set {cfg.ifname} promisc off")


def promiscuous(cfg):
    """ Frames to other addresses arrive in promiscuous mode. """
    _promiscuous(cfg)
    _check_arrive(cfg, FRAMES, OTHER)


def promiscuous_no_more(cfg):
    """ Frames to other addresses are filtered again. """
    _check_arrive(cfg, 0, OTHER)


def _join(cfg, mac=GROUP):
    ip(f"maddr add {mac} dev {cfg.ifname}")
    defer(ip, f"maddr del {mac} dev {cfg.ifname}")


def group_joined(cfg):
    """ Frames to a joined group arrive. """
    _join(cfg)
    _check_arrive(cfg, FRAMES, GROUP)


def group_left(cfg):
    """ Frames to a group are filtered after leaving it. """
    _check_arrive(cfg, 0, GROUP)


def _down_and_up(cfg):
    for state in ("down", "up"):
        ip(f"link set {cfg.ifname} {state}")
    cfg.card.wait_up()


@ksft_disruptive
def group_survives(cfg):
    """ Frames to a joined group arrive after down and up. """
    _join(cfg)
    _down_and_up(cfg)
    _check_arrive(cfg, FRAMES, GROUP)


@ksft_disruptive
def promiscuous_survives(cfg):
    """ Promiscuous mode is in effect after down and up. """
    _promiscuous(cfg)
    _down_and_up(cfg)
    _check_arrive(cfg, FRAMES, OTHER)


def _all_multicast(cfg):
    ip(f"link set {cfg.ifname} allmulticast on")
    defer(ip, f"link set {cfg.ifname} allmulticast off")


def all_multicast_group(cfg):
    """ Frames to any group arrive in all-multicast mode. """
    _all_multicast(cfg)
    _check_arrive(cfg, FRAMES, GROUP)


def all_multicast_other(cfg):
    """ Unicast is still filtered in all-multicast mode. """
    _all_multicast(cfg)
    _check_arrive(cfg, 0, OTHER)


def all_multicast_no_more(cfg):
    """ Frames to a group are filtered again. """
    _check_arrive(cfg, 0, GROUP)


def _group(number):
    return bytes((1, 0, 0x5E, 2, number >> 8, number & 255))


def _text(mac):
    return ":".join(f"{byte:02x}" for byte in mac)


@ksft_disruptive
def groups_joined(cfg):
    """ More groups can be joined than the card has filters. """
    cfg.holder = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    for number in range(1, GROUPS + 1):
        mac = _group(number)
        request = struct.pack("=iHH8s", cfg.ifindex, PACKET_MR_MULTICAST,
                              len(mac), mac)
        cfg.holder.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, request)


@ksft_variants([100, GROUPS])
def groups_one_of_many(cfg, number):
    """ Frames to one of many groups arrive. """
    _check_arrive(cfg, FRAMES, _text(_group(number)))


def groups_left(cfg):
    """ Frames to a group are filtered after leaving all. """
    cfg.holder.close()
    _check_arrive(cfg, 0, _text(_group(100)))


def _fdb(cfg, verb):
    cmd(f"bridge fdb {verb} {OTHER} dev {cfg.ifname}")


def second_unicast(cfg):
    """ Frames to a second unicast address arrive. """
    try:
        _fdb(cfg, "add")
    except CmdExitFailure as error:
        raise KsftSkipEx("bridge fdb add is not possible here") from error
    defer(_fdb, cfg, "del")
    _check_arrive(cfg, FRAMES, OTHER)


def _join_and_leave(cfg):
    request = struct.pack("=iHH8s", cfg.ifindex, PACKET_MR_MULTICAST, 6, _group(1))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as member:
        member.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, request)


def second_unicast_stays(cfg):
    """ No frame to a second unicast address is lost while groups are joined. """
    if cfg.driver not in ("ixgbe", "ixgbe_rust"):
        raise KsftSkipEx("this driver writes all addresses anew")
    try:
        _fdb(cfg, "add")
    except CmdExitFailure as error:
        raise KsftSkipEx("bridge fdb add is not possible here") from error
    defer(_fdb, cfg, "del")
    with repeated(_join_and_leave, cfg):
        _check_arrive(cfg, OTHERS, OTHER, OTHERS)


def second_unicast_gone(cfg):
    """ Frames to the second address are filtered after its removal. """
    _check_arrive(cfg, 0, OTHER)


@ksft_disruptive
def new_address(cfg):
    """ The interface shows its new MAC address. """
    ip(f"link set {cfg.ifname} address {OTHER}")
    ksft_eq(cfg.ports[0].mac(), OTHER)


def new_address_frames(cfg):
    """ Frames to the new address arrive. """
    _check_arrive(cfg, FRAMES, OTHER)


def old_address_frames(cfg):
    """ Frames to the old address are filtered. """
    _check_arrive(cfg, 0, cfg.own)


@ksft_variants([
    KsftNamedVariant("multicast", "01:00:00:00:00:01"),
    KsftNamedVariant("zeros", "00:00:00:00:00:00"),
])
def address_refused(cfg, mac):
    """ An invalid MAC address is refused and changes nothing. """
    with ksft_raises(CmdExitFailure):
        ip(f"link set {cfg.ifname} address {mac}")
    ksft_eq(cfg.ports[0].mac(), OTHER)


@ksft_disruptive
def new_address_survives(cfg):
    """ The interface keeps the new address after down and up. """
    _down_and_up(cfg)
    ksft_eq(cfg.ports[0].mac(), OTHER)


def new_address_survives_frames(cfg):
    """ Frames to the new address arrive after down and up. """
    _check_arrive(cfg, FRAMES, OTHER)


@ksft_disruptive
def old_address_again(cfg):
    """ The old address can be set again. """
    ip(f"link set {cfg.ifname} address {cfg.own}")
    ksft_eq(cfg.ports[0].mac(), cfg.own)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        cfg.holder = None
        with contextlib.ExitStack() as at_end:
            at_end.callback(lambda: cfg.holder and cfg.holder.close())
            ksft_run(judged([set_up, address, promiscuous, promiscuous_no_more,
                             group_joined, group_left, all_multicast_group,
                             all_multicast_other, all_multicast_no_more,
                             group_survives, promiscuous_survives,
                             groups_joined, groups_one_of_many,
                             groups_left, second_unicast, second_unicast_stays,
                             second_unicast_gone,
                             new_address, new_address_frames, old_address_frames,
                             forwards_after("new_address"), address_refused,
                             new_address_survives, new_address_survives_frames,
                             old_address_again,
                             forwards_after("old_address")]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
