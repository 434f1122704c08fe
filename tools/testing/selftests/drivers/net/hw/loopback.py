#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" A device in loopback (ethtool -K loopback on) receives what it sends, and sends nothing. """

import os
import socket
import struct

from lib.py import KsftSkipEx, NetNSEnter, cmd, defer, ethtool, ip, ksft_disruptive
from lib.py import ksft_eq, ksft_exit, ksft_run
from lib.py.peer import PeerEnv
from lib.py.support import wait_until

# An experimental one (IEEE 802).
ETH_P_EXPERIMENT = 0x88b5
BROADCAST = b"\xff" * 6
# There is room for so many in a socket, also for long ones.
FRAMES = 20
# The number of a frame that is not among them.
PROBE = 0xffffffff
MTU = 3000
# Seconds in which frames arrive, and in which it shows that none does.
PATIENCE, SILENCE = 60, 0.5
# Check-ups in which a driver notices that the link is lost.
NOTICE = 3


class Ends:
    """ Packet sockets of both ends. What an end sends is not among its packets. """

    def __init__(self, cfg):
        self._own = bytes.fromhex(cfg.dev["address"].replace(":", ""))
        self.here = self._open(cfg.ifname)
        with NetNSEnter(cfg.remote_ns):
            self.there = self._open(cfg.remote_ifname)

    @staticmethod
    def _open(ifname):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_EXPERIMENT))
        sock.bind((ifname, ETH_P_EXPERIMENT))
        return sock

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.here.close()
        self.there.close()

    def send(self, number, length=60):
        """ Send a frame with a number. """
        header = BROADCAST + self._own + struct.pack("!HI", ETH_P_EXPERIMENT, number)
        self.here.send(header.ljust(length, b"\x5a"))


def _receive(sock, patience):
    """ Return the number of the next frame, or None. """
    sock.settimeout(patience)
    try:
        return struct.unpack_from("!I", sock.recv(1 << 16), 14)[0]
    except TimeoutError:
        return None


def _numbers(sock, most, patience):
    """ Return the numbers of the frames that come, but for the probe. """
    found = []
    while len(found) < most and (number := _receive(sock, patience)) is not None:
        if number != PROBE:
            found.append(number)
    return found


def _passes(cfg, comes_back):
    """ Whether a frame comes back, or reaches the other end. """
    with Ends(cfg) as ends:
        ends.send(PROBE)
        return _receive(ends.here if comes_back else ends.there, SILENCE) is not None


def _check(cfg, comes_back, length=60):
    """ All frames come back, in order, and none leaves; or the other way round. """
    # Without loopback, both ends need a link.
    if not comes_back:
        cfg.wait_up()
    wait_until(lambda: _passes(cfg, comes_back), 60, "a frame passes")
    with Ends(cfg) as ends:
        right, wrong = (ends.here, ends.there) if comes_back else (ends.there, ends.here)
        for number in range(FRAMES):
            ends.send(number, length)
        ksft_eq(_numbers(right, FRAMES, PATIENCE), list(range(FRAMES)), "frames where they belong")
        ksft_eq(_numbers(wrong, FRAMES, SILENCE), [], "frames at the other end")


def _has_carrier(cfg):
    return ip(f"link show dev {cfg.ifname}", json=True)[0]["operstate"] == "UP"


@ksft_disruptive
def comes_back(cfg):
    """ Frames come back, in order, and none leaves. """
    if ethtool(f"-k {cfg.ifname}", json=True)[0]["loopback"]["fixed"]:
        raise KsftSkipEx("the driver has no such feature")
    _check(cfg, False)
    ethtool(f"-K {cfg.ifname} loopback on")
    cfg.loops = True
    _check(cfg, True)


def _needs_loopback(cfg):
    if not cfg.loops:
        raise KsftSkipEx("the device is not in loopback")


@ksft_disruptive
def outlasts_down_and_up(cfg):
    """ The device is in loopback when it comes up again, with another MTU, too. """
    _needs_loopback(cfg)
    mtu = cfg.dev["mtu"]
    ip(f"link set {cfg.ifname} down")
    ip(f"link set {cfg.ifname} up")
    _check(cfg, True)
    ip(f"link set {cfg.ifname} mtu {MTU}")
    try:
        _check(cfg, True, MTU)
    finally:
        ip(f"link set {cfg.ifname} mtu {mtu}")


@ksft_disruptive
def outlasts_a_self_test(cfg):
    """ A test of the card, which takes it into a loopback of its own, passes and leaves it. """
    _needs_loopback(cfg)
    wait_until(lambda: _has_carrier(cfg), 30, "there is a carrier")
    said = cmd(f"ethtool -t {cfg.ifname} offline", fail=False, timeout=120)
    ksft_eq(said.ret, 0, said.stdout)
    _check(cfg, True)


def _keeps_carrier(cfg):
    """ The carrier stays without a part of the link, also after down and up. """
    cfg.model.wait_check_ups(0, NOTICE)
    ksft_eq(_has_carrier(cfg), True, "it stays")
    ip(f"link set {cfg.ifname} down")
    ip(f"link set {cfg.ifname} up")
    _check(cfg, True)


@ksft_disruptive
def needs_no_link(cfg):
    """ The device has a carrier without a link partner. """
    _needs_loopback(cfg)
    defer(cfg.model.link, 0, True)
    cfg.model.link(0, False)
    _keeps_carrier(cfg)


@ksft_disruptive
def needs_no_module(cfg):
    """ The same without a module in the cage. """
    _needs_loopback(cfg)
    if os.environ.get("CARD") == "82599-kx4":
        raise KsftSkipEx("needs a card with cages")
    defer(cfg.model.module, 0)
    cfg.model.module(0, "absent")
    _keeps_carrier(cfg)


@ksft_disruptive
def leaves_again(cfg):
    """ Without loopback, frames leave, and none comes back. """
    _needs_loopback(cfg)
    ethtool(f"-K {cfg.ifname} loopback off")
    cfg.loops = False
    _check(cfg, False)


@ksft_disruptive
def needs_a_link_again(cfg):
    """ Without loopback, the carrier is that of the link. """
    cfg.model.link(0, False)
    try:
        wait_until(lambda: not _has_carrier(cfg), 30, "the carrier is lost")
    finally:
        cfg.model.link(0, True)
    _check(cfg, False)


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        cfg.loops = False
        try:
            ksft_run(cfg.judged([comes_back, outlasts_down_and_up, outlasts_a_self_test,
                                 needs_no_link, needs_no_module, leaves_again,
                                 needs_a_link_again]), args=(cfg, ))
        finally:
            if cfg.loops:
                ethtool(f"-K {cfg.ifname} loopback off")
    ksft_exit()


if __name__ == "__main__":
    main()
