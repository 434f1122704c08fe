#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

""" The tests that a card makes of itself (ethtool -t) pass, and find what is broken. """

import contextlib
import re

from lib.py import KsftFailEx, KsftNamedVariant, KsftSkipEx, bkg, cmd, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_in, ksft_ne, ksft_run
from lib.py import ksft_variants
from lib.py.judge import judged
from lib.py.nicmodel import CableEnv
from lib.py.support import skip_program, wait_until

# A word of the multicast table, which has a use in no case.
DEAD_REGISTER = 0x5200 + 4 * 77
JUMBO = 3000


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
    if cfg.card and cfg.card.driver == "ixgbe":
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


def _reaches(cfg, size=56):
    return cmd(f"ping -q -c 1 -W 1 -M do -s {size} {cfg.remote_addr_v['4']}", fail=False).ret == 0


def _come_back(cfg):
    wait_until(lambda: _reaches(cfg), 30, "the remote end can be reached")


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
            link = ip(f"link show dev {cfg.ifname}", json=True)[0]
            ksft_eq("UP" in link["flags"], False)
    finally:
        ip(f"link set {cfg.ifname} up")
    _come_back(cfg)


@ksft_disruptive
def no_link(cfg):
    """ The link test alone fails without a link. """
    cfg.model.link(0, False)
    try:
        wait_until(lambda: not _online(cfg)[0], 10, "the test fails")
        passed, codes = _online(cfg)
    finally:
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
    # The vectors are masked for good, as those of a card that loses interrupts are.
    ip(f"link set {cfg.ifname} down")
    ip(f"link set {cfg.ifname} up")
    _come_back(cfg)
    ksft_eq(_online(cfg)[0], True, "after the repair")


def main():
    """ Ksft boiler plate main """

    with CableEnv(__file__) as cfg:
        if cmd(f"ethtool -t {cfg.ifname} online", fail=False).stdout == "":
            cfg.unplug()
            skip_program("the driver has no self-test")
        ksft_run(judged([online, offline, settings_stay, under_traffic, while_down, no_link,
                         broken, lost_interrupts]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
