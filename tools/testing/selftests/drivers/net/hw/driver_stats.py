#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Driver information, and counters compared with the traffic.
"""

import re

from lib.py import KsftNamedVariant, cmd, ethtool, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_ge, ksft_gt, ksft_run, ksft_true
from lib.py import ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv
from lib.py.support import driver_stats, wait_until

COUNTERS = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes")
ERRORS = ("rx_errors", "rx_dropped", "tx_errors", "tx_dropped")
FRAMES, SIZE = 5000, 200
ONLY_RUST = "the driver has no such counter"


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


@ksft_variants(["driver", "bus-info"])
def info(cfg, field):
    """ ethtool -i shows the driver and the bus address. """
    expected = {"driver": cfg.driver, "bus-info": cfg.ports[0].pci}[field]
    said = ethtool(f"-i {cfg.ifname}").stdout
    ksft_eq(re.search(rf"^{field}: (.*)$", said, re.M)[1], expected)


def link_detected(cfg):
    """ ethtool reports the link. """
    ksft_true("Link detected: yes" in ethtool(cfg.ifname).stdout)


def lists_counters(cfg):
    """ ethtool -S lists counters. """
    ksft_gt(len(driver_stats(cfg.ifname)), 0)


def _snapshot(cfg, names):
    return {(port.number, name): port.stat(name)
            for port in cfg.ports for name in names}


def frames_counted(cfg):
    """ Every frame is forwarded; later cases compare the counters. """
    before = _snapshot(cfg, COUNTERS + ERRORS)
    cfg.check_forwarded(FRAMES, SIZE)
    received, sent = cfg.ports
    wait_until(lambda: received.stat("rx_packets") >= before[0, "rx_packets"] + FRAMES
               and sent.stat("tx_packets") >= before[1, "tx_packets"] + FRAMES,
               10, "the frames are counted")
    # Drivers that read the card's counters only now and then do so for that.
    for port in cfg.ports:
        driver_stats(port.ifname)
    after = _snapshot(cfg, COUNTERS + ERRORS)
    cfg.growth = {key: after[key] - before[key] for key in before}


@ksft_variants([
    KsftNamedVariant("rx_packets", 0, "rx_packets", FRAMES),
    KsftNamedVariant("rx_bytes", 0, "rx_bytes", FRAMES * SIZE),
    KsftNamedVariant("tx_packets", 1, "tx_packets", FRAMES),
    KsftNamedVariant("tx_bytes", 1, "tx_bytes", FRAMES * SIZE),
])
def growth(cfg, port, name, expected):
    """
    A counter grew by the frames sent, apart from a few others such as ARP.
    """
    ksft_ge(cfg.growth[port, name], expected)
    ksft_ge(expected + expected // 100 + 20, cfg.growth[port, name])


@ksft_variants(ERRORS)
def no_errors(cfg, name):
    """ An error counter did not grow. """
    ksft_eq([cfg.growth[port, name] for port in (0, 1)], [0, 0])


@ksft_disruptive
def updown(cfg):
    """ Interfaces go down and up; later cases compare the counters. """
    before = _snapshot(cfg, COUNTERS)
    cfg.both("down")
    cfg.both("up")
    after = _snapshot(cfg, COUNTERS)
    cfg.survived = {key: (before[key], after[key]) for key in before}
    cfg.set_up()


@ksft_variants(COUNTERS)
def updown_keeps(cfg, name):
    """ A counter is not smaller after down and up. """
    for port in (0, 1):
        before, after = cfg.survived[port, name]
        ksft_ge(after, before, f"port {port}")


def _freed_in_bulk(cfg):
    # Other drivers have no such counter.
    return driver_stats(cfg.ports[1].ifname).get("bulk_free_packets", 0)


def forwards_after_updown(cfg):
    """ The driver forwards every frame. """
    before = _freed_in_bulk(cfg)
    cfg.check_forwarded(FRAMES, 60)
    cfg.bulk = _freed_in_bulk(cfg) - before


def bulk_free_counted(cfg):
    """ The driver counted packets freed in bulk. """
    cfg.require_driver("ixgbe_rust", ONLY_RUST)
    ksft_gt(cfg.bulk, 0)


@ksft_variants(["off", "on"])
def rx_checksum(cfg, state):
    """ Every frame is forwarded with checksum offload in this state. """
    cfg.require_driver("ixgbe_rust", ONLY_RUST)
    cmd(f"ethtool -K {cfg.ifname} rx {state}")
    before = driver_stats(cfg.ifname)["rx_csum_good"]
    cfg.check_forwarded(200)
    cfg.checksums[state] = driver_stats(cfg.ifname)["rx_csum_good"] - before


@ksft_variants(["off", "on"])
def rx_checksum_told(cfg, state):
    """ The driver passes on checksum results only if the offload is on. """
    cfg.require_driver("ixgbe_rust", ONLY_RUST)
    ksft_eq(cfg.checksums[state] > 0, state == "on",
            f"{cfg.checksums[state]} packets")


def _wrong_sum(mac, header="66bd"):
    """ Return a UDP datagram whose checksum is wrong, with this checksum of its IP header. """
    ip_header = "4500002e000000004011" + header + "0a000002" + "0a000001"
    return bytes.fromhex(mac + "0200000000020800" + ip_header + "1f901f90001adead") + bytes(18)


@ksft_variants([KsftNamedVariant("wrong_sum", _wrong_sum),
                # Nothing that the card could sum up.
                KsftNamedVariant("no_sum", lambda mac: bytes.fromhex(mac + "02000000000288b5")
                                 + bytes(46))])
def rx_checksum_unverified(cfg, frame):
    """ A frame whose checksum the card has not found right is not said to be verified. """
    cfg.require_driver("ixgbe_rust", ONLY_RUST)
    port = cfg.ports[0]
    frame = frame(port.attr("address").replace(":", ""))
    received, before = port.stat("rx_packets"), driver_stats(cfg.ifname)["rx_csum_good"]
    for _ in range(20):
        cfg.model.inject(0, frame)
    wait_until(lambda: port.stat("rx_packets") >= received + 20, 10, "the frames are received")
    ksft_eq(driver_stats(cfg.ifname)["rx_csum_good"] - before, 0)


@ksft_variants([KsftNamedVariant("header", "66bc", 20), KsftNamedVariant("datagram", "66bd", 0)])
def rx_checksum_errors(cfg, header, errors):
    """
    A wrong checksum of an IP header counts whatever follows. One of UDP does not, since the card
    finds it wrong if there is none, too.
    """
    cfg.require_driver("ixgbe_rust", ONLY_RUST)
    port = cfg.ports[0]
    frame = _wrong_sum(port.attr("address").replace(":", ""), header)
    received, before = port.stat("rx_packets"), driver_stats(cfg.ifname)["rx_csum_errors"]
    for _ in range(20):
        cfg.model.inject(0, frame)
    wait_until(lambda: port.stat("rx_packets") >= received + 20, 10, "the frames are received")
    ksft_eq(driver_stats(cfg.ifname)["rx_csum_errors"] - before, errors)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        cfg.growth, cfg.survived, cfg.bulk, cfg.checksums = {}, {}, 0, {}
        ksft_run(judged([set_up, info, link_detected, lists_counters, frames_counted,
                         growth, no_errors, updown, updown_keeps,
                         forwards_after_updown, bulk_free_counted,
                         rx_checksum, rx_checksum_told, rx_checksum_unverified,
                         rx_checksum_errors]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
