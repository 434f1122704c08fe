#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" The lengths of rings: what users set is what the card gets, under traffic as well. """

import struct
import subprocess

from lib.py import CmdExitFailure, KsftNamedVariant, KsftSkipEx, ethtool
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_in
from lib.py import ksft_lt, ksft_raises, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after, traffic_intact
from lib.py.support import rounds

LEAST = 64
# Of the 82599, and of other cards.
MOST = {"ixgbe": 8192, "ixgbe_rust": 8192}
MOST_OF_OTHERS = 4096
# In a dump of the registers of ixgbe_rust, by words: see dump.rs of the driver.
RDLEN, TDLEN = 3 - 16 * 12, 8 - 16 * 12


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()
    cfg.first = _get(cfg.ports[0])
    cfg.most = MOST.get(cfg.driver, MOST_OF_OTHERS)


def _rings(port):
    return ethtool(f"-g {port.ifname}", json=True)[0]


def _get(port):
    rings = _rings(port)
    return rings["rx"], rings["tx"]


def _set(port, rx, tx):
    # ethtool complains if nothing changes.
    if _get(port) != (rx, tx):
        ethtool(f"-G {port.ifname} rx {rx} tx {tx}")


def _set_both(cfg, rx, tx):
    for port in cfg.ports:
        _set(port, rx, tx)


def shown(cfg):
    """ Both ports have rings within the limits. """
    for port in cfg.ports:
        rings = _rings(port)
        ksft_eq((rings["rx-max"], rings["tx-max"]), (cfg.most, cfg.most))
        for length in _get(port):
            ksft_ge(length, LEAST)
            ksft_ge(cfg.most, length)


@ksft_disruptive
def rounded_up(cfg):
    """ A number that no ring can have gives a longer one, not much longer. """
    for asked in ((100, 1000), (65, 2049)):
        _set(cfg.ports[0], *asked)
        for want, got in zip(asked, _get(cfg.ports[0]), strict=True):
            ksft_ge(got, want)
            ksft_lt(got, 2 * want)
    _set(cfg.ports[0], *cfg.first)
    ksft_eq(_get(cfg.ports[0]), cfg.first)


@ksft_variants([KsftNamedVariant("rx_short", "rx 32"), KsftNamedVariant("tx_short", "tx 63"),
                KsftNamedVariant("rx_zero", "rx 0"), KsftNamedVariant("rx_long", "rx 8193"),
                KsftNamedVariant("tx_long", "tx 65536"), KsftNamedVariant("mini", "rx-mini 64")])
def refused(cfg, what):
    """ Other numbers are refused with a reason, and change nothing. """
    if cfg.driver == "ixgbe":
        raise KsftSkipEx("the driver takes the nearest length instead")
    before = _get(cfg.ports[0])
    with ksft_raises(CmdExitFailure) as raised:
        ethtool(f"-G {cfg.ifname} {what}")
    reason = str(raised.exception)
    short = what.split()[1] in ("0", "32", "63")
    ksft_in(f"ring size must be 64 to {cfg.most}" if short else "exceeds maximum", reason)
    ksft_eq(_get(cfg.ports[0]), before)


@ksft_disruptive
def resized_under_traffic(cfg):
    """ Rings get shorter and longer under traffic. """
    cfg.start_traffic()
    for _ in range(rounds(cfg, 4, 1)):
        for number, lengths in enumerate(((64, 64), (cfg.most, 64), (128, 2048), (512, 512))):
            port = cfg.ports[number % 2]
            _set(port, *lengths)
            ksft_eq(_get(port), lengths)
            cfg.set_up()


@ksft_variants([KsftNamedVariant("short", True, True), KsftNamedVariant("rx_short", True, False),
                KsftNamedVariant("tx_short", False, True), KsftNamedVariant("long", False, False)])
@ksft_disruptive
def set_both(cfg, rx_short, tx_short):
    """ Both ports take the shortest and the longest rings, and forward with them. """
    rx, tx = (LEAST if short else cfg.most for short in (rx_short, tx_short))
    _set_both(cfg, rx, tx)
    cfg.set_up()
    # No more frames at once than a ring and the queue before it take, and all of them at least
    # twice around the ring.
    window = min(rx, tx, 512) // 2
    cfg.check_forwarded(2 * max(rx, tx) + window, window=window)
    cfg.check_forwarded(300, 1514, window=window)


@ksft_disruptive
def card_has_them(cfg):
    """ The registers of the card say the same. Receive rings alone do not take the link down. """
    cfg.require_driver("ixgbe_rust", "knows another dump of registers")
    _set(cfg.ports[0], 512, 1024)
    flaps = cfg.ports[0].attr("carrier_changes")
    _set(cfg.ports[0], 256, 1024)
    ksft_eq(cfg.ports[0].attr("carrier_changes"), flaps)
    raw = subprocess.check_output(["ethtool", "-d", cfg.ifname, "raw", "on"])
    words = [word for (word, ) in struct.iter_unpack("=I", raw)]
    ksft_eq((words[RDLEN], words[TDLEN]), (256 * 16, 1024 * 16))


@ksft_disruptive
def stay_over_down_and_up(cfg):
    """ A port that is down takes other lengths, and has them when it is up. """
    cfg.both("down")
    _set_both(cfg, 2048, 128)
    cfg.set_up()
    ksft_eq(_get(cfg.ports[1]), (2048, 128))


@ksft_disruptive
def set_back(cfg):
    """ Both ports have the lengths from before. """
    _set_both(cfg, *cfg.first)
    ksft_eq(_get(cfg.ports[1]), cfg.first)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        cfg.first, cfg.most = None, MOST_OF_OTHERS
        ksft_run(judged([set_up, shown, rounded_up, refused,
                         resized_under_traffic, traffic_intact("resizing"),
                         forwards_after("resizing"), set_both, card_has_them,
                         stay_over_down_and_up, forwards_after("down_and_up"),
                         set_back, forwards_after("all")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
