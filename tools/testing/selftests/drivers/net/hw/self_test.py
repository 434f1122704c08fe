#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" The tests that a card makes of itself (ethtool -t) pass, and find what is broken. """

import contextlib
import errno
import re
import socket

from lib.py import EthtoolFamily, KsftFailEx, KsftNamedVariant, KsftSkipEx, NetdevFamily
from lib.py import NetNSEnter, bkg, cmd, ethtool, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_ne, ksft_run
from lib.py import ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import skip_program, wait_until

# A word of the multicast table, which has a use in no case.
DEAD_REGISTER = 0x5200 + 4 * 77
JUMBO = 3000
ETH_P_ALL = 3
ETH_P_LOOPBACK = 0x9000
# Its name if it is made by the core, by frames of that type, and their number for each queue.
LOOPBACK_TEST = "loopback test (offline)"
LOOPED = 8
# Check-ups after a test in which a driver notices that the link is lost, and resets its card, which
# reads counters, too. The test holds the locks that the driver needs for that.
NOTICE = 5


def _driver(cfg):
    """ Return the name of the driver. """
    return re.search(r"^driver: (.+)$", cmd(f"ethtool -i {cfg.ifname}").stdout, re.M)[1]


def _run(cfg, mode):
    """ Make the tests. Return whether all have passed, and the codes by name. """
    said = cmd(f"ethtool -t {cfg.ifname} {mode}", fail=False, timeout=120)
    if "The test result is" not in said.stdout:
        raise KsftFailEx(f"ethtool -t {mode}: {said.stdout} {said.stderr}")
    codes = {name.strip().lower(): int(code)
             for name, code in re.findall(r"^(.+)\t (-?\d+)$", said.stdout, re.M)}
    passed = "result is PASS" in said.stdout
    ksft_eq(passed, said.ret == 0, "ethtool says the same by its exit code")
    return passed, codes


def _online(cfg):
    return _run(cfg, "online")


def _offline(cfg):
    """ The same with the offline tests. """
    if cfg.driver == "ixgbe":
        # It may still send from rings that it has freed, which is the end of the kernel. And it
        # writes what no driver may.
        raise KsftSkipEx("the driver does not survive its offline tests on the modelled card")
    return _run(cfg, "offline")


def _code(codes, what):
    """ Return the code of a test, or skip the case if the driver lacks it. """
    for name, code in codes.items():
        if what in name:
            return code
    raise KsftSkipEx(f"the driver has no test with '{what}' in its name")


def _loops(cfg):
    """ Skip the case if the core has no loopback test for the driver. """
    if LOOPBACK_TEST not in _online(cfg)[1]:
        raise KsftSkipEx("the driver has no loopback test, or one of its own")


def _reaches(cfg, size=56):
    return cmd(f"ping -q -c 1 -W 1 -M do -s {size} {cfg.remote_addr_v['4']}", fail=False).ret == 0


def _come_back(cfg):
    cfg.reach()


def online(cfg):
    """ The online tests pass, and none is lacking that is made offline. """
    passed, codes = _online(cfg)
    ksft_eq((passed, set(codes.values())), (True, {0}), codes)
    ksft_eq(_reaches(cfg), True, "the device has stayed up")


@ksft_disruptive
def offline(cfg):
    """ All tests pass. """
    passed, codes = _offline(cfg)
    ksft_eq((passed, set(codes.values())), (True, {0}), codes)
    _come_back(cfg)


@ksft_disruptive
def settings_stay(cfg):
    """ The device goes on with its MTU and its flags. """
    with contextlib.ExitStack() as undo:
        for ifname, host in ((cfg.ifname, None), (cfg.remote_ifname, cfg.remote)):
            mtu = ip(f"link show dev {ifname}", json=True, host=host)[0]["mtu"]
            undo.callback(ip, f"link set {ifname} mtu {mtu}", host=host)
            ip(f"link set {ifname} mtu {JUMBO}", host=host)
        _come_back(cfg)
        ip(f"link set {cfg.ifname} allmulticast on")
        undo.callback(ip, f"link set {cfg.ifname} allmulticast off")
        ksft_eq(_offline(cfg)[0], True)
        _come_back(cfg)
        ksft_eq(_reaches(cfg, JUMBO - 28), True, "large packets")
        link = ip(f"link show dev {cfg.ifname}", json=True)[0]
        ksft_eq(link["mtu"], JUMBO)
        ksft_in("UP", link["flags"])


@ksft_disruptive
def under_traffic(cfg):
    """ The tests pass while packets come and go. """
    with bkg(f"ping -q -f -w 20 {cfg.remote_addr_v['4']}", fail=False, exit_wait=False):
        for _ in range(3):
            ksft_eq(_online(cfg)[0], True)
            passed, codes = _offline(cfg)
            ksft_eq(passed, True, codes)
            _come_back(cfg)


@ksft_disruptive
def while_down(cfg):
    """ A device that is down has no link, its card is in order, and it stays down. """
    ip(f"link set {cfg.ifname} down")
    try:
        for run in (_online, _offline):
            passed, codes = run(cfg)
            ksft_eq(passed, False)
            ksft_ne(_code(codes, "link"), 0)
            ksft_eq(_code(codes, "register"), 0)
            ksft_eq(_code(codes, "eeprom"), 0)
            ksft_eq(codes.get(LOOPBACK_TEST, 0), 0)
            link = ip(f"link show dev {cfg.ifname}", json=True)[0]
            ksft_eq("UP" in link["flags"], False)
    finally:
        ip(f"link set {cfg.ifname} up")
        _come_back(cfg)


@ksft_variants([KsftNamedVariant("online", _online), KsftNamedVariant("offline", _offline)])
@ksft_disruptive
def no_link(cfg, run):
    """ The link test alone fails without a link, and nothing is queued when that is back. """
    with bkg(f"ping -q -f -w 20 {cfg.remote_addr_v['4']}", fail=False, exit_wait=False):
        cfg.model.link(0, False)
        try:
            wait_until(lambda: not _online(cfg)[0], 60, "the test fails")
            passed, codes = run(cfg)
        finally:
            cfg.model.wait_check_ups(0, NOTICE)
            cfg.model.link(0)
    ksft_eq((passed, [name for name, code in codes.items() if code]),
            (False, [name for name in codes if "link" in name]))
    _come_back(cfg)
    ksft_eq(_online(cfg)[0], True)


@ksft_variants([KsftNamedVariant("register", "register", "dead_register", DEAD_REGISTER),
                KsftNamedVariant("eeprom", "eeprom", "damaged_eeprom", None)])
@ksft_disruptive
def broken(cfg, what, kind, value):
    """ A broken part fails its test, once that is made, and no other. """
    cfg.model.fault(0, kind, value=value)
    try:
        ksft_eq(_online(cfg)[0], True)
        passed, codes = _offline(cfg)
    finally:
        cfg.model.mend(0)
    ksft_eq((passed, [name for name, code in codes.items() if code]),
            (False, [name for name in codes if what in name]))
    if value is not None:
        ksft_eq(_code(codes, what), value, "the code tells which")
    _come_back(cfg)
    ksft_eq(_offline(cfg)[0], True, "after the repair")
    _come_back(cfg)


@ksft_variants([KsftNamedVariant("lost", "looped_lost", errno.ETIMEDOUT),
                KsftNamedVariant("damaged", "looped_damaged", errno.EBADMSG)])
@ksft_disruptive
def broken_loopback(cfg, kind, code):
    """ A frame that does not come back as it was sent fails the test. """
    _loops(cfg)
    cfg.model.fault(0, kind)
    try:
        ksft_eq(_online(cfg)[0], True)
        passed, codes = _offline(cfg)
    finally:
        cfg.model.mend(0)
    ksft_eq((passed, {name: code for name, code in codes.items() if code}),
            (False, {LOOPBACK_TEST: 1 << 16 | code}), "the first queue")
    _come_back(cfg)
    ksft_eq(_offline(cfg)[0], True, "after the repair")
    _come_back(cfg)


def _sent(cfg):
    """ Return the packets that each transmit queue has sent. """
    stats = NetdevFamily().qstats_get({"ifindex": cfg.ifindex, "scope": {"queue"}}, dump=True)
    return {one["queue-id"]: one["tx-packets"] for one in stats if one["queue-type"] == "tx"}


@ksft_disruptive
def loopback_of_each_queue(cfg):
    """ Each transmit queue sends its frames. """
    _loops(cfg)
    channels = EthtoolFamily().channels_get({"header": {"dev-index": cfg.ifindex}})
    before, count = channels["combined-count"], min(2, channels["combined-max"])
    with contextlib.ExitStack() as undo:
        if before != count:
            undo.callback(ethtool, f"-L {cfg.ifname} combined {before}")
            ethtool(f"-L {cfg.ifname} combined {count}")
        _come_back(cfg)
        sent = _sent(cfg)
        ksft_eq(_offline(cfg)[1][LOOPBACK_TEST], 0)
        for queue, packets in _sent(cfg).items():
            if queue < count:
                ksft_ge(packets - sent[queue], LOOPED, f"queue {queue}")
    _come_back(cfg)


def _sniff(undo, ifname):
    """ Return a socket that gets all frames of an interface. """
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    undo.callback(sock.close)
    sock.bind((ifname, ETH_P_ALL))
    sock.setblocking(False)
    return sock


def _types(sock):
    """ Return the types of all frames that a socket has got. """
    types = set()
    with contextlib.suppress(BlockingIOError):
        while True:
            types.add(int.from_bytes(sock.recv(64)[12:14], "big"))
    return types


@ksft_disruptive
def loopback_stays_inside(cfg):
    """ No frame of the loopback is on the wire, and no sniffer gets one. """
    _loops(cfg)
    with contextlib.ExitStack() as undo:
        own = _sniff(undo, cfg.ifname)
        with NetNSEnter(cfg.remote_ns):
            remote = _sniff(undo, cfg.remote_ifname)
        for gro in ("off", "on"):
            ethtool(f"-K {cfg.ifname} gro {gro}")
            ksft_eq(_offline(cfg)[1][LOOPBACK_TEST], 0)
            ksft_in(f"generic-receive-offload: {gro}", cmd(f"ethtool -k {cfg.ifname}").stdout)
            _come_back(cfg)
            for name, sock in (("own", own), ("remote", remote)):
                types = _types(sock)
                ksft_eq(ETH_P_LOOPBACK in types, False, f"{name} sniffer")
                ksft_ne(types, set(), f"{name} sniffer gets others")


@ksft_disruptive
def lost_interrupts(cfg):
    """ The interrupt test fails if the interrupts do not come. """
    if _driver(cfg) == "ixgbe":
        raise KsftSkipEx("the driver does not test MSI-X")
    cfg.model.fault(0, "lost_interrupts")
    try:
        passed, codes = _online(cfg)
    finally:
        cfg.model.mend(0)
    ksft_eq(passed, False)
    ksft_ne(_code(codes, "interrupt"), 0)
    ksft_eq(_code(codes, "link"), 0)
    # Check-ups find masked queue vectors, but the event vector waits until its cause is cleared.
    ip(f"link set {cfg.ifname} down")
    ip(f"link set {cfg.ifname} up")
    _come_back(cfg)
    ksft_eq(_online(cfg)[0], True, "after the repair")


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        if cmd(f"ethtool -t {cfg.ifname} online", fail=False).stdout == "":
            skip_program("the driver has no self-test")
        ksft_run(cfg.judged([online, offline, settings_stay, under_traffic, while_down, no_link,
                             broken, broken_loopback, loopback_of_each_queue,
                             loopback_stays_inside, lost_interrupts]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
