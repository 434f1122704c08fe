#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
The clock of a NIC can be set and adjusted, and goes on whatever happens to the port. Packets of PTP
have its time when they are sent and received; a card that fills its latches wrongly, or not at all,
does not stop that.
"""

import errno
import time

from lib.py import EthtoolFamily, KsftFailEx, KsftNamedVariant, NetNSEnter, cmd, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_lt, ksft_ne
from lib.py import ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.ptp_clock import ALL, DELAY_REQ, ETH_P_1588, FOLLOW_UP, MULTICAST, NONE, PDELAY_REQ
from lib.py.ptp_clock import SECOND, SYNC, V1_SYNC, V2_EVENT, Clock, Sockets, clock_number
from lib.py.ptp_clock import configure, message, message_v1, received, sent_stamp
from lib.py.support import driver_stats, kernel_log, wait_until

# Names of counters, of both drivers.
TIMEOUTS, CLEARED = "tx_hwtstamp_timeouts", "rx_hwtstamp_cleared"
# The part by which the clocks of card and machine may run at different rates, none of which is set.
RATES = 0.05


def _ran(first, last, shift=0, rate=1.0, slack=0):
    """
    Between two readings, the clock was shifted, and has run at a rate. In `slack` nanoseconds,
    which were among them, it may have stood still, or run twice.
    """
    least, most = last.before - first.after - slack, last.after - first.before + slack
    moved = last.time - first.time - shift
    ksft_ge(moved, least * (rate - RATES), f"{first} {last}")
    ksft_ge(most * (rate + RATES), moved, f"{first} {last}")


def tells_users(cfg):
    """ Users find the clock, and the stamps that the port takes. """
    said = cmd(f"ethtool -T {cfg.ifname}").stdout
    for what in ("hardware-transmit", "hardware-receive", "hardware-raw-clock",
                 "software-transmit", "ptpv1-l4-sync", "ptpv1-l4-delay-req", "ptpv2-event"):
        ksft_in(what, said)
    ksft_ne(clock_number(cfg.ifname), clock_number(cfg.remote_ifname, cfg.remote))


def is_set(cfg):
    """ The clock has the time that it is given, and goes on. """
    first = cfg.clock.set(5 * SECOND)
    second = cfg.clock.read()
    _ran(first, second)
    ksft_ge(cfg.clock.now(), second.time)
    cfg.clock.set(time.time_ns())


def is_shifted(cfg):
    """ The clock is shifted either way. """
    for shift in (10 * SECOND, -7 * SECOND - 3):
        before = cfg.clock.read()
        cfg.clock.shift(shift)
        _ran(before, cfg.clock.read(), shift)


@ksft_variants([KsftNamedVariant(name, ppb) for name, ppb in
                (("nominal", 0), ("faster", 200_000_000), ("slower", -200_000_000))])
def runs(cfg, ppb):
    """ The clock runs as its frequency says. """
    cfg.clock.frequency(ppb)
    try:
        start = cfg.clock.read()
        time.sleep(1)
        _ran(start, cfg.clock.read(), rate=1 + ppb / 1e9)
    finally:
        cfg.clock.frequency(0)


def refuses_frequency(cfg):
    """ A frequency that is too far off is refused. """
    try:
        cfg.clock.frequency(300_000_000)
    except OSError as error:
        ksft_eq(error.errno, errno.ERANGE)
    else:
        ksft_eq(True, False, "it was accepted")


def filters(cfg):
    """ The port says what it stamps, and refuses what it cannot. """
    ksft_eq(configure(cfg.ifname, 1, V1_SYNC), (1, V1_SYNC))
    # Events of any kind stand for Sync over UDP.
    ksft_eq(configure(cfg.ifname, 1, 7), (1, V2_EVENT))
    for tx, rx, why in ((1, ALL, "the NIC stamps"), (2, V2_EVENT, "is not supported")):
        try:
            configure(cfg.ifname, tx, rx)
        except OSError as error:
            ksft_eq(error.errno, errno.ERANGE)
            if cfg.driver == "ixgbe_rust":
                # The reason, which the core logs for users of the system call.
                ksft_in(why, kernel_log().splitlines()[-1])
        else:
            ksft_eq(True, False, f"{tx} and {rx} were accepted")
    ksft_eq(configure(cfg.ifname, 0, NONE), (0, NONE))
    ksft_eq(configure(cfg.ifname, 1, V2_EVENT), (1, V2_EVENT))


def _frame(cfg, body, source):
    return MULTICAST + bytes.fromhex(source.replace(":", "")) + ETH_P_1588.to_bytes(2) + body


def _send(cfg, sockets, layer, kind, number=0):
    """ Send a message to the peer, or have the peer send it. Returns its socket. """
    near = sockets is cfg.near
    if layer == "udp":
        address = (cfg.remote_addr_v if near else cfg.addr_v)["4"]
        sockets.udp.sendto(message(kind, number), (address, 319))
        return sockets.udp
    device = cfg.dev if near else cfg.remote_dev
    sockets.raw.send(_frame(cfg, message(kind, number), device["address"]))
    return sockets.raw


def _receive(cfg, sockets, layer):
    return received(sockets.udp if layer == "udp" else sockets.raw)[1]


LAYERS = [KsftNamedVariant(layer, layer) for layer in ("udp", "ethernet")]


@ksft_variants(LAYERS)
def sent(cfg, layer):
    """ A message has the time at which it is sent, whatever its kind. """
    for kind in (SYNC, FOLLOW_UP, DELAY_REQ):
        before = cfg.clock.now()
        stamp = sent_stamp(_send(cfg, cfg.near, layer, kind))
        ksft_ne(stamp, None)
        ksft_ge(stamp or 0, before)
        ksft_ge(cfg.clock.now(), stamp or 0)
        _receive(cfg, cfg.far, layer)


@ksft_variants(LAYERS)
def arrives(cfg, layer):
    """ An event has the time at which it is received, other messages have none. """
    for kind in (SYNC, FOLLOW_UP, DELAY_REQ, PDELAY_REQ):
        before = cfg.clock.now()
        sent_stamp(_send(cfg, cfg.far, layer, kind))
        stamp = _receive(cfg, cfg.near, layer)
        if kind == FOLLOW_UP:
            ksft_eq(stamp, None)
            continue
        ksft_ne(stamp, None)
        ksft_ge(stamp or 0, before)
        ksft_ge(cfg.clock.now(), stamp or 0)


def version_1(cfg):
    """ Of version 1, the messages that were chosen have a time. """
    configure(cfg.ifname, 1, V1_SYNC)
    try:
        for control in (0, 1):
            cfg.far.udp.sendto(message_v1(control), (cfg.addr_v["4"], 319))
            sent_stamp(cfg.far.udp)
            stamp = received(cfg.near.udp)[1]
            ksft_eq(stamp is not None, control == 0)
    finally:
        configure(cfg.ifname)


def none_without_request(cfg):
    """ A port that is not to stamp does not. """
    configure(cfg.ifname, 0, NONE)
    try:
        ksft_eq(sent_stamp(_send(cfg, cfg.near, "udp", SYNC), 0.5), None)
        _receive(cfg, cfg.far, "udp")
        sent_stamp(_send(cfg, cfg.far, "udp", SYNC))
        ksft_eq(_receive(cfg, cfg.near, "udp"), None)
    finally:
        configure(cfg.ifname)


def _offset(cfg):
    """ When, by the stamps, the peer's clock is ahead by how much, with the mean of both ways. """
    there = sent_stamp(_send(cfg, cfg.near, "ethernet", SYNC))
    arrived = _receive(cfg, cfg.far, "ethernet")
    back = sent_stamp(_send(cfg, cfg.far, "ethernet", DELAY_REQ))
    returned = _receive(cfg, cfg.near, "ethernet")
    if None in (there, arrived, back, returned):
        raise KsftFailEx(f"a message without a stamp: {(there, arrived, back, returned)}")
    return (there + returned) / 2, ((arrived - there) + (back - returned)) / 2


def _drift(cfg, seconds):
    """ By how much the peer's clock gains, in parts per billion. """
    start, before = _offset(cfg)
    time.sleep(seconds)
    end, after = _offset(cfg)
    return (after - before) / (end - start) * 1e9


def follows(cfg):
    """
    A clock with a drift of 50 ppm is made to run as the other one, by the stamps: to within 100 ns
    a second, as finely as the card's increments are.
    """
    cfg.model.fault(1, "drift", value=50_000)
    frequency = 0.0
    try:
        ksft_ge(_drift(cfg, 0.2), 40_000, "the drift")
        # The first result has the drift within an exchange of messages in it, too.
        for _ in range(4):
            frequency -= _drift(cfg, 0.2)
            cfg.far_clock.frequency(frequency)
        start, offset = _offset(cfg)
        cfg.far_clock.shift(-round(offset))
        for _ in range(5):
            time.sleep(0.1)
            end, offset = _offset(cfg)
            passed = end - start
            ksft_lt(abs(offset), 100 * max(1.0, passed / 1e9), f"after {passed} ns")
    finally:
        cfg.far_clock.frequency(0)
        cfg.model.mend(1)


def _counter(cfg, name):
    return driver_stats(cfg.ifname)[name]


def _works(cfg):
    """ Both directions have times. """
    ksft_ne(sent_stamp(_send(cfg, cfg.near, "udp", SYNC)), None)
    _receive(cfg, cfg.far, "udp")
    sent_stamp(_send(cfg, cfg.far, "udp", SYNC))
    ksft_ne(_receive(cfg, cfg.near, "udp"), None)


def no_stamp_is_taken(cfg):
    """ A packet whose time never comes is given up, and counted. """
    before = _counter(cfg, TIMEOUTS)
    cfg.model.fault(0, "no_stamp", 1)
    sock = _send(cfg, cfg.near, "udp", SYNC)
    wait_until(lambda: _counter(cfg, TIMEOUTS) == before + 1, 20, "it is given up")
    ksft_eq(sent_stamp(sock, 0), None)
    _receive(cfg, cfg.far, "udp")
    _works(cfg)


def another_one_waits(cfg):
    """ One packet at a time has a time. The next one has none, and is sent. """
    before = _counter(cfg, "tx_hwtstamp_skipped")
    cfg.model.fault(0, "no_stamp", 1)
    for number in range(2):
        _send(cfg, cfg.near, "udp", SYNC, number)
    for _ in range(2):
        _receive(cfg, cfg.far, "udp")
    ksft_eq(_counter(cfg, "tx_hwtstamp_skipped"), before + 1)
    ksft_eq(sent_stamp(cfg.near.udp, 3), None)
    _works(cfg)


def _counts(cfg):
    """ Packets that got their stamps, that lost them, and that got none for another reason. """
    said = EthtoolFamily().tsinfo_get({"header": {"dev-index": cfg.ifindex, "flags": {"stats"}}})
    return [said["stats"][f"tx-{name}"] for name in ("pkts", "lost", "err")]


def counts(cfg):
    """ Users see how many packets have asked for a stamp, and what became of it. """
    cfg.require_driver("ixgbe_rust", why="the driver does not count them there")
    before = _counts(cfg)
    ksft_ne(sent_stamp(_send(cfg, cfg.near, "udp", SYNC)), None)
    cfg.model.fault(0, "no_stamp", 1)
    _send(cfg, cfg.near, "udp", SYNC)
    wait_until(lambda: _counts(cfg)[1] != before[1], 20, "it is given up")
    cfg.model.fault(0, "old_stamp", 1, 60_000)
    _send(cfg, cfg.near, "udp", SYNC)
    wait_until(lambda: _counts(cfg)[2] != before[2], 20, "its stamp is refused")
    ksft_eq(_counts(cfg), [number + 1 for number in before])
    for _ in range(3):
        _receive(cfg, cfg.far, "udp")


@ksft_disruptive
def late_stamp(cfg):
    """ A time that comes after its packet was given up is not that of another one. """
    cfg.require_driver("ixgbe_rust", why="the driver believes any time")
    before = _counter(cfg, TIMEOUTS), _counter(cfg, "tx_hwtstamp_skipped")
    # The card neither stamps the packet nor says that it was sent.
    cfg.model.fault(0, "no_stamp", 1)
    cfg.model.fault(0, "tx_no_done", 1)
    sock = _send(cfg, cfg.near, "udp", SYNC)
    wait_until(lambda: _counter(cfg, TIMEOUTS) == before[0] + 1, 20, "it is given up")
    # Now it does, with the time of that packet.
    cfg.model.fault(0, "old_stamp", 1, 500)
    for _ in range(2):
        _send(cfg, cfg.near, "udp", SYNC)
    ksft_eq(sent_stamp(sock), None)
    ksft_eq(_counter(cfg, "tx_hwtstamp_skipped"), before[1] + 2)
    cfg.model.mend(0)
    # The packet leaves the ring.
    for state in ("down", "up"):
        ip(f"link set {cfg.ifname} {state}")
    cfg.reach()
    cfg.know_each_other()
    for _ in range(3):
        _receive(cfg, cfg.far, "udp")
    ksft_eq(_counter(cfg, TIMEOUTS), before[0] + 1)
    _works(cfg)


def frame_is_lost(cfg):
    """ A stamp whose frame is lost does not keep the latch for long. """
    before = _counter(cfg, CLEARED)
    cfg.model.fault(0, "hidden_stamp", 1)
    for expected in (None, None):
        sent_stamp(_send(cfg, cfg.far, "udp", SYNC))
        ksft_eq(_receive(cfg, cfg.near, "udp"), expected)
    wait_until(lambda: _counter(cfg, CLEARED) == before + 1, 20, "the latch is emptied")
    _works(cfg)


def old_stamps(cfg):
    """ A time long ago is refused in both directions, and counted. """
    cfg.require_driver("ixgbe_rust", why="the driver believes any time")
    before = [_counter(cfg, f"{way}_hwtstamp_invalid") for way in ("rx", "tx")]
    cfg.model.fault(0, "old_stamp", 1, 60_000)
    sent_stamp(_send(cfg, cfg.far, "udp", SYNC))
    ksft_eq(_receive(cfg, cfg.near, "udp"), None)
    cfg.model.fault(0, "old_stamp", 1, 60_000)
    ksft_eq(sent_stamp(_send(cfg, cfg.near, "udp", SYNC), 0.5), None)
    _receive(cfg, cfg.far, "udp")
    after = [_counter(cfg, f"{way}_hwtstamp_invalid") for way in ("rx", "tx")]
    ksft_eq(after, [number + 1 for number in before])
    _works(cfg)


def stamp_of_another(cfg):
    """ A time that nobody has asked for is not that of the next packet. """
    cfg.require_driver("ixgbe_rust", why="the driver believes any time")
    before = _counter(cfg, "tx_hwtstamp_cleared")
    cfg.model.fault(0, "unasked_stamp", 1)
    with Sockets(cfg.ifname, cfg.addr_v["4"], stamps=False) as plain:
        plain.udp.sendto(message(SYNC), (cfg.remote_addr_v["4"], 319))
    _receive(cfg, cfg.far, "udp")
    start = cfg.clock.now()
    stamp = sent_stamp(_send(cfg, cfg.near, "udp", SYNC))
    _receive(cfg, cfg.far, "udp")
    ksft_ge(stamp or 0, start)
    ksft_eq(_counter(cfg, "tx_hwtstamp_cleared"), before + 1)


@ksft_disruptive
def goes_on(cfg):
    """ The time goes on while the port is down, and its settings last. """
    cfg.require_driver("ixgbe_rust", why="the clock goes with the port")
    first, busy = cfg.clock.set(1000 * SECOND), 0
    for state in ("down", "up"):
        start = time.monotonic_ns()
        ip(f"link set {cfg.ifname} {state}")
        busy += time.monotonic_ns() - start
        time.sleep(1)
        _ran(first, cfg.clock.read(), slack=busy)
    cfg.reach()
    cfg.know_each_other()
    _works(cfg)


@ksft_disruptive
def other_speed(cfg):
    """ The clock runs on as before at another speed of the link. """
    model = cfg.model
    first = cfg.clock.set(2000 * SECOND)
    try:
        for port in (0, 1):
            model.module(port, "sx")
        cfg.wait_up()

        def runs_as_before():
            before = cfg.clock.read()
            time.sleep(0.2)
            after = cfg.clock.read()
            return abs(after.time - before.time - (after.after - before.before)) <= (
                RATES * (after.after - before.before))

        # With the link comes the rate, when the driver has seen it.
        wait_until(runs_as_before, 20, "the clock runs as before")
        after = cfg.clock.read()
    finally:
        for port in (0, 1):
            model.module(port)
        cfg.wait_up()
    # Until the driver knows of a link, the clock runs at the rate of the one before.
    last = cfg.clock.read()
    ksft_ge(last.time, after.time)
    ksft_ge(10 * (last.after - first.before), last.time - first.time)
    cfg.know_each_other()


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__, v6=False) as cfg:
        cfg.reach()
        cfg.know_each_other()
        configure(cfg.ifname)
        cfg.far_clock = Clock(clock_number(cfg.remote_ifname, cfg.remote))
        with NetNSEnter(cfg.remote_ns):
            configure(cfg.remote_ifname)
            cfg.far = Sockets(cfg.remote_ifname, cfg.remote_addr_v["4"])
        cfg.near = Sockets(cfg.ifname, cfg.addr_v["4"])
        cfg.clock = Clock(clock_number(cfg.ifname))
        with cfg.near, cfg.far, cfg.clock, cfg.far_clock:
            ksft_run(cfg.judged([tells_users, is_set, is_shifted, runs, refuses_frequency,
                                 filters, sent, arrives, version_1, none_without_request,
                                 follows, no_stamp_is_taken, another_one_waits, counts,
                                 late_stamp, frame_is_lost, old_stamps, stamp_of_another,
                                 goes_on, other_speed]), args=(cfg, ))
        # The programs after it find the port as it was.
        configure(cfg.ifname, tx=0, rx=0)
    ksft_exit()


if __name__ == "__main__":
    main()
