#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Receive buffers: the memory that a frame takes, frames that just fit into a buffer or do not,
and a stream while the buffers change with the MTU.
"""

import array
import mmap
import random
import socket
import struct

from lib.py import KsftNamedVariant, KsftSkipEx, defer, ethtool, ip, ksft_disruptive
from lib.py import ksft_eq, ksft_exit, ksft_ge, ksft_lt, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import beside, driver_stats, frames_since, rounds, wait_until
from tcp_stream import transfer

ETH_P_ALL, ETH_P_VLAN, ETH_P_TEST = 3, 0x8100, 0x88b5
ETH_HLEN, VLAN_HLEN = 14, 4
PEER = bytes.fromhex("020000000002")
SO_MEMINFO, SO_RCVBUF_FORCE = 55, 33
PAGE = 4096
# Both halves of several pages.
FRAMES = 24
# The greatest MTU with which ixgbe_rust receives into halves of pages is 1510.
MTUS = (1500, 1510, 1511, 9000)


def _set_mtu(cfg, mtu):
    """ Set the MTU of both ends. """
    ip(f"link set {cfg.ifname} mtu {mtu}")
    ip(f"link set {cfg.remote_ifname} mtu {mtu}", host=cfg.remote)
    cfg.wait_up()


def _with_mtu(cfg, mtu):
    for dev in (cfg.dev, cfg.remote_dev):
        if not dev["min_mtu"] <= mtu <= (dev["max_mtu"] or mtu):
            raise KsftSkipEx(f"{dev['ifname']} has no MTU of {mtu}")
    _set_mtu(cfg, mtu)
    defer(_set_mtu, cfg, 1500)


def _listen(cfg, protocol):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUF_FORCE, 1 << 20)
    sock.bind((cfg.ifname, protocol))
    sock.settimeout(5)
    return sock


def _frame(cfg, number, length, tag=b""):
    """ Build a frame of that length without its tag; no two have the same data. """
    mac = bytes.fromhex(cfg.dev["address"].replace(":", ""))
    data = random.Random(number).randbytes(length - ETH_HLEN)
    return mac + PEER + tag + struct.pack("!H", ETH_P_TEST) + data


def _check_arrive(cfg, frames, expected):
    """ Inject frames, and check that only those that are expected arrive, whole. """
    left = [frame.hex() for frame in expected]
    with _listen(cfg, ETH_P_ALL) as sock:
        for frame in frames:
            cfg.inject(frame)
        while left:
            frame = sock.recv(20000)
            if frame[12:14] == struct.pack("!H", ETH_P_TEST):
                ksft_eq(frame.hex(), left.pop(0), f"{len(left)} are left")


@ksft_variants(MTUS)
def frames_that_fit(cfg, mtu):
    """ The longest frames arrive whole, and so do shorter ones. """
    _with_mtu(cfg, mtu)
    lengths = (mtu + ETH_HLEN, mtu + ETH_HLEN - 1, 60, 600)
    frames = [_frame(cfg, number, lengths[number % 4]) for number in range(FRAMES)]
    _check_arrive(cfg, frames, frames)


@ksft_variants([KsftNamedVariant(f"{mtu}_strip_{state}", mtu, state)
                for mtu in MTUS for state in ("on", "off")])
def tagged_frames_that_fit(cfg, mtu, strip):
    """ The longest frames of a VLAN arrive whole: the limit does not count the tag. """
    _with_mtu(cfg, mtu)
    ethtool(f"-K {cfg.ifname} rxvlan {strip} rx-vlan-filter off")
    defer(ethtool, f"-K {cfg.ifname} rxvlan on rx-vlan-filter on")
    tag = struct.pack("!HH", ETH_P_VLAN, 100)
    tagged, plain = ([_frame(cfg, number, mtu + ETH_HLEN, one) for number in range(FRAMES)]
                     for one in (tag, b""))
    # The stack removes the tags that the card leaves in place.
    _check_arrive(cfg, tagged, plain)


@ksft_variants(MTUS)
def frames_that_are_too_long(cfg, mtu):
    """ The card drops frames above the limit; those before and after them arrive whole. """
    _with_mtu(cfg, mtu)
    before = driver_stats(cfg.ifname).get("rx_bad_descriptors", 0)
    frames, good = [], []
    for number in range(FRAMES):
        good.append(_frame(cfg, number, mtu + ETH_HLEN))
        frames += [_frame(cfg, number, mtu + ETH_HLEN + more) for more in (1, VLAN_HLEN, 500)]
        frames.append(good[-1])
    for frame in frames:
        if len(frame) > mtu + ETH_HLEN:
            ksft_eq(cfg.model.ask("inject", port=0, hex=frame.hex())["taken"], False)
    _check_arrive(cfg, frames, good)
    ksft_eq(driver_stats(cfg.ifname).get("rx_bad_descriptors", 0), before)


def _memory(cfg, length):
    """ Return the memory that a frame of that length takes in a socket. """
    taken = 0
    with _listen(cfg, ETH_P_TEST) as sock:
        for number in range(FRAMES):
            cfg.inject(_frame(cfg, number, length))

        def all_are_there():
            nonlocal taken
            taken += frames_since(sock)
            return taken == FRAMES

        wait_until(all_are_there, 5, "all frames are in the socket")
        counts = array.array("I", sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36))
    return counts[0] / FRAMES


def memory(cfg):
    """ A frame takes half of a page, or more if the MTU needs more. """
    cfg.require_driver("ixgbe", "ixgbe_rust", why="other drivers divide pages in other ways")
    if mmap.PAGESIZE != PAGE:
        raise KsftSkipEx("needs pages of 4 KiB")
    ksft_lt(_memory(cfg, 1514), PAGE)
    _with_mtu(cfg, 9000)
    ksft_ge(_memory(cfg, 1514), PAGE)


@ksft_disruptive
def stream_while_the_mtu_changes(cfg):
    """ A TCP stream arrives as it was sent, whatever the buffers at its ends. """
    def change():
        for count in range(rounds(cfg, 3, 2)):
            for mtu in MTUS[count % 2:] + MTUS[:1]:
                _set_mtu(cfg, mtu)

    _with_mtu(cfg, max(MTUS))
    with beside(change) as changing:
        transfer(cfg, 2_000_000, "sendfile")
        while changing.is_alive():
            transfer(cfg, 2_000_000, "sendfile")


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__, v6=False) as cfg:
        ksft_run(cfg.judged([frames_that_fit, tagged_frames_that_fit, frames_that_are_too_long,
                             memory, stream_while_the_mtu_changes]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
