#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" Changes under traffic: unbind, down and up, MTU, and a flapping link. """

from lib.py import KsftNamedVariant, bkg, ip, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_raises, ksft_run, ksft_variants
from lib.py import CmdExitFailure
from lib.py.nicmodel import judged
from lib.py.nicmodel import PATIENCE_MS, Cable, NicModelEnv, forwards_after
from lib.py.nicmodel import traffic_intact
from lib.py.support import rounds, wait_until

ETH_HLEN = 14
# Frames in less than a buffer, on both sides of the limit above which ixgbe_rust receives into
# other buffers, in more than one of 2048 bytes, and in several.
MTUS = (1400, 1510, 1511, 2048, 9000)


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


@ksft_disruptive
def unbind_and_bind(cfg):
    """ Each port in turn is unbound and bound under traffic. """
    cfg.start_traffic()
    for count in range(rounds(cfg, 10, 4)):
        port = cfg.ports[count % 2]
        port.unbind()
        port.bind(cfg.driver)
        cfg.set_up()


@ksft_disruptive
def down_and_up(cfg):
    """ Each port in turn goes down and up under traffic. """
    cfg.start_traffic()
    for _ in range(rounds(cfg, 6, 3)):
        for port in reversed(cfg.ports):
            ip(f"link set {port.ifname} down")
            cfg.set_up()


@ksft_disruptive
def up_under_flood(cfg):
    """ A port whose receive ring fills while it goes up still receives. """
    for _ in range(rounds(cfg, 5, 2)):
        ip(f"link set {cfg.ports[0].ifname} down")
        # Without a window: more than the ring and the packet buffer can hold. On a slow machine
        # the ring alone takes longer than a burst waits for its last frames.
        cfg.start_traffic(20000, window=0, drain_ms=PATIENCE_MS)
        cfg.set_up()
        cfg.check_traffic()


def _set_mtu(cfg, mtu):
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu {mtu}")
        ksft_eq(port.attr("mtu"), str(mtu))


@ksft_disruptive
def mtu(cfg):
    """ The MTU changes under traffic. """
    cfg.start_traffic()
    for _ in range(rounds(cfg, 2, 1)):
        for value in (9000, 1400, 2048, 1500):
            _set_mtu(cfg, value)


@ksft_variants([KsftNamedVariant("too_large", 60000), KsftNamedVariant("too_small", 10)])
def mtu_refused(cfg, value):
    """ An invalid MTU is refused and changes nothing. """
    with ksft_raises(CmdExitFailure):
        ip(f"link set {cfg.ports[0].ifname} mtu {value}")
    ksft_eq(cfg.ports[0].attr("mtu"), "1500")


@ksft_disruptive
def mtu_set(cfg, value):
    """ Both ports take this MTU. """
    _set_mtu(cfg, value)
    cfg.set_up()


def mtu_largest_frames(cfg, value):
    """ The largest frames of this MTU are forwarded. """
    for port in cfg.ports:
        ksft_eq(port.attr("mtu"), str(value))
    try:
        cfg.check_forwarded(500, value + ETH_HLEN)
    finally:
        _set_mtu(cfg, 1500)


def largest_frames():
    """ Yield the cases of each MTU in turn. """
    for value in MTUS:
        for case in (mtu_set, mtu_largest_frames):
            yield ksft_variants([value])(case)


@ksft_disruptive
def frames_above_mtu(cfg):
    """ A port with a low MTU receives ordinary frames: that of its peer may be larger. """
    ip(f"link set {cfg.ports[0].ifname} mtu 1300")
    try:
        cfg.set_up()
        cfg.check_forwarded(500, 1500 + ETH_HLEN)
    finally:
        _set_mtu(cfg, 1500)


def cable(cfg):
    """ The ports reach each other over the cable. """
    cfg.cable = Cable(cfg.card)


def _set_link(cfg, number, state):
    """ Set the link of a port, and wait until its carrier has followed. """
    cfg.model.link(number, state)
    show, ns = f"link show dev {cfg.ports[number].ifname}", cfg.cable.ns if number else None
    wait_until(lambda: ("LOWER_UP" in ip(show, json=True, ns=ns)[0]["flags"]) == state, 10,
               f"the carrier of port {number} is {state}")


@ksft_disruptive
def link_flap(cfg):
    """ Links go down and up under traffic. """
    with bkg(f"ping -q -f -W 1 -w 60 {cfg.cable.variables()['REMOTE_V4']}"):
        for count in range(10):
            for state in (False, True):
                _set_link(cfg, count % 2, state)


@ksft_variants([KsftNamedVariant("down", False), KsftNamedVariant("up", True)])
def link_change(cfg, state):
    """ The carrier follows the link. """
    _set_link(cfg, 0, state)


def reach_after_flaps(cfg):
    """ The ports reach each other again. """
    wait_until(cfg.cable.reaches, 15, "the ports reach each other")


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        cfg.cable = None
        try:
            ksft_run(judged([set_up,
                             unbind_and_bind, traffic_intact("unbind"), forwards_after("unbind"),
                             down_and_up, traffic_intact("down_and_up"),
                             forwards_after("down_and_up"),
                             up_under_flood, forwards_after("flood"),
                             mtu, traffic_intact("mtu"), mtu_refused, forwards_after("mtu"),
                             *largest_frames(), frames_above_mtu,
                             cable, link_flap, link_change, reach_after_flaps]),
                     args=(cfg, ))
        finally:
            if cfg.cable:
                cfg.cable.close()
    ksft_exit()


if __name__ == "__main__":
    main()
