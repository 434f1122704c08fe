#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" A device in loopback (ethtool -K loopback on) receives what it sends, and sends nothing. """

import socket
import struct
import time

from lib.py import KsftSkipEx, NetNSEnter, cmd, ethtool, ip, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_run
from lib.py.judge import judged
from lib.py.nicmodel import CableEnv
from lib.py.support import wait_until

# An experimental one (IEEE 802).
ETH_P_EXPERIMENT = 0x88b5
BROADCAST = b"\xff" * 6
# There is room for so many in a socket, also for long ones.
FRAMES = 20
MTU = 3000
# Seconds in which a driver notices that the link is lost.
NOTICE = 3


def _switch(cfg, on):
    ethtool(f"-K {cfg.ifname} loopback {'on' if on else 'off'}")
    _wait_carrier(cfg)


def _operstate(cfg):
    return ip(f"link show dev {cfg.ifname}", json=True)[0]["operstate"]


def _wait_carrier(cfg):
    wait_until(lambda: _operstate(cfg) == "UP", 30, "there is a carrier")


def _sockets(cfg):
    """ Return packet sockets of both ends. What an end sends is not among its packets. """
    here = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_EXPERIMENT))
    here.bind((cfg.ifname, ETH_P_EXPERIMENT))
    with NetNSEnter(cfg.remote_ns):
        there = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                              socket.htons(ETH_P_EXPERIMENT))
        there.bind((cfg.remote_ifname, ETH_P_EXPERIMENT))
    return here, there


def _received(sock):
    """ Return the numbers of the frames that come until there are none for a while. """
    sock.settimeout(0.5)
    found = []
    try:
        while True:
            found.append(struct.unpack_from("!I", sock.recv(1 << 16), 14)[0])
    except TimeoutError:
        return found


def _goes_to(cfg, length=60):
    """ Send frames. Return whether they came back, and whether they reached the other end. """
    own = bytes.fromhex(cfg.dev["address"].replace(":", ""))
    here, there = _sockets(cfg)
    with here, there:
        for number in range(FRAMES):
            header = BROADCAST + own + struct.pack("!HI", ETH_P_EXPERIMENT, number)
            here.send(header.ljust(length, b"\x5a"))
        found = [_received(sock) for sock in (here, there)]
    for numbers in found:
        ksft_eq(numbers in ([], list(range(FRAMES))), True, f"all or none: {numbers}")
    return tuple(bool(numbers) for numbers in found)


@ksft_disruptive
def comes_back(cfg):
    """ Frames come back, in order, and none leaves. """
    if ethtool(f"-k {cfg.ifname}", json=True)[0]["loopback"]["fixed"]:
        raise KsftSkipEx("the driver has no such feature")
    ksft_eq(_goes_to(cfg), (False, True), "before")
    _switch(cfg, True)
    cfg.loops = True
    ksft_eq(_goes_to(cfg), (True, False), "in loopback")


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
    _wait_carrier(cfg)
    ksft_eq(_goes_to(cfg), (True, False))
    ip(f"link set {cfg.ifname} mtu {MTU}")
    try:
        _wait_carrier(cfg)
        ksft_eq(_goes_to(cfg, MTU), (True, False), f"MTU {MTU}")
    finally:
        ip(f"link set {cfg.ifname} mtu {mtu}")
        _wait_carrier(cfg)


@ksft_disruptive
def outlasts_a_self_test(cfg):
    """ A test of the card, which takes it into a loopback of its own, passes and leaves it. """
    _needs_loopback(cfg)
    said = cmd(f"ethtool -t {cfg.ifname} offline", fail=False, timeout=120)
    ksft_eq(said.ret, 0, said.stdout)
    _wait_carrier(cfg)
    ksft_eq(_goes_to(cfg), (True, False))


@ksft_disruptive
def needs_no_link(cfg):
    """ The device keeps its carrier without a link partner. """
    _needs_loopback(cfg)
    ip(f"link set {cfg.remote_ifname} down", host=cfg.remote)
    try:
        time.sleep(NOTICE)
        ksft_eq(_operstate(cfg), "UP")
    finally:
        ip(f"link set {cfg.remote_ifname} up", host=cfg.remote)


@ksft_disruptive
def leaves_again(cfg):
    """ Without loopback, frames leave, and none comes back. """
    _needs_loopback(cfg)
    _switch(cfg, False)
    wait_until(lambda: _goes_to(cfg) == (False, True), 30, "frames reach the other end")


def main():
    """ Ksft boiler plate main """

    with CableEnv(__file__) as cfg:
        cfg.loops = False
        ksft_run(judged([comes_back, outlasts_down_and_up, outlasts_a_self_test,
                         needs_no_link, leaves_again]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
