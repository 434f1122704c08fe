#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Ports of a backplane: the link needs no module, its mode is that of the EEPROM,
and firmware that manages the link is asked before the driver starts it.
"""

import os

from lib.py import CmdExitFailure, defer, ethtool, ip, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_in, ksft_not_in, ksft_raises, ksft_run
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import skip_program, wait_until
from sfp import Log, bind_anew, carrier, set_up

NO_START = "failed to start the link"


def link_by_itself(cfg):
    """ The link is up at the speed of the card, and there is no module. """
    carrier(cfg, True)
    ksft_in("Speed: 10000Mb/s", ethtool(cfg.ifname).stdout)
    with ksft_raises(CmdExitFailure):
        ethtool(f"-m {cfg.ifname}")


@ksft_disruptive
def link_goes_and_comes(cfg):
    """ The cable is pulled and put back. """
    defer(cfg.model.link, 0, True)
    for state in (False, True):
        cfg.model.link(0, state)
        carrier(cfg, state)
    cfg.card.wait_up()
    cfg.check_forwarded(100)


def _held(cfg, cable):
    """
    Take the interface up while firmware that manages the link holds it, with its cable plugged in
    or not. Return the log since then, and a function that returns the number of writes to AUTOC.
    """
    defer(bind_anew, cfg)
    defer(cfg.model.mend, 0)
    defer(cfg.model.link, 0, True)
    cfg.model.fault(0, "lesm")
    bind_anew(cfg)
    ip(f"link set {cfg.ports[0].ifname} down")
    cfg.model.link(0, cable)
    cfg.model.fault(0, "firmware_busy", count=1000000)
    cfg.model.ask("trace", port=0, phase="firmware")
    defer(cfg.model.ask, "trace", port=0)
    before, log = cfg.model.writes(0, "AUTOC"), Log()
    ip(f"link set {cfg.ports[0].ifname} up")
    log.wait(NO_START)
    return log, lambda: cfg.model.writes(0, "AUTOC") - before


@ksft_disruptive
def firmware_lets_go(cfg):
    """ The link is started as soon as firmware that manages it lets go. """
    log, starts = _held(cfg, False)
    # The first one tries, and has ended when there is another one.
    cfg.model.wait_check_ups(0, 2)
    ksft_eq(starts(), 0, "writes to AUTOC meanwhile")
    # It does not wait for the interface to be taken down and up.
    cfg.model.fault(0, "firmware_busy", count=0)
    wait_until(lambda: starts() == 2, 60, "the link is started")
    ksft_eq(log.text().count(NO_START), 1)
    cfg.model.link(0, True)
    cfg.set_up()
    cfg.check_forwarded(100)


@ksft_disruptive
def link_is_there(cfg):
    """ A link that is there without a start is not taken away for one. """
    _, starts = _held(cfg, True)
    cfg.set_up()
    cfg.model.fault(0, "firmware_busy", count=0)
    cfg.model.wait_check_ups(0, 4)
    ksft_eq(starts(), 0, "writes to AUTOC")
    cfg.check_forwarded(100)


@ksft_disruptive
def firmware_is_asked(cfg):
    """ Firmware that manages the link lets it be started. """
    defer(bind_anew, cfg)
    defer(cfg.model.mend, 0)
    log = Log()
    cfg.model.fault(0, "lesm")
    bind_anew(cfg)
    ksft_not_in(NO_START, log.text())
    cfg.check_forwarded(100)


@ksft_disruptive
def loopback_waits_for_firmware(cfg):
    """ The loopback is switched as soon as firmware that manages the link lets go. """
    port = cfg.ports[0]
    defer(bind_anew, cfg)
    defer(cfg.model.mend, 0)
    defer(cfg.model.link, 0, True)
    cfg.model.fault(0, "lesm")
    bind_anew(cfg)
    cfg.model.link(0, False)
    cfg.model.ask("trace", port=0, phase="firmware")
    defer(cfg.model.ask, "trace", port=0)
    for wanted, is_up in (("on", True), ("off", False)):
        before, log = cfg.model.writes(0, "AUTOC"), Log()
        cfg.model.fault(0, "firmware_busy", count=1000000)
        ethtool(f"-K {port.ifname} loopback {wanted}")
        log.wait(NO_START)
        # The first one tries, and has ended when there is another one.
        cfg.model.wait_check_ups(0, 2)
        ksft_eq(cfg.model.writes(0, "AUTOC") - before, 0, "writes to AUTOC meanwhile")
        ksft_eq(port.attr("carrier"), "0", "the carrier meanwhile")
        cfg.model.fault(0, "firmware_busy", count=0)
        carrier(cfg, is_up)
        ksft_eq(log.text().count(NO_START), 1, "messages")
    cfg.model.link(0, True)
    carrier(cfg, True)


def _trains(cfg, *lanes):
    """ Signals pass over these lanes only, and the driver learns that the port negotiates. """
    cfg.model.link(0, True, trains=lanes)
    cfg.ports[0].unbind()
    cfg.ports[0].bind(cfg.driver)
    cfg.card.find()
    cfg.model.ask("trace", port=0, phase="lanes")
    defer(cfg.model.ask, "trace", port=0)
    ip(f"link set {cfg.ports[0].ifname} up")


@ksft_disruptive
def kr_does_not_train(cfg):
    """ A backplane over which KR does not pass has a link over other lanes. """
    defer(bind_anew, cfg)
    defer(cfg.model.link, 0, True)
    _trains(cfg, "kx4")
    carrier(cfg, True)
    cfg.set_up()
    ksft_in("Speed: 10000Mb/s", ethtool(cfg.ifname).stdout)
    cfg.check_forwarded(100)
    # A link that gets lost is looked for over all lanes again.
    cfg.model.link(0, False, trains=["kr"])
    carrier(cfg, False)
    cfg.model.link(0, True, trains=["kr"])
    carrier(cfg, True)
    cfg.check_forwarded(100)


@ksft_disruptive
def kr_trains(cfg):
    """ A backplane over which KR passes keeps it: the link is started once. """
    defer(bind_anew, cfg)
    defer(cfg.model.link, 0, True)
    _trains(cfg, "kr", "kx4")
    carrier(cfg, True)
    cfg.set_up()
    starts = cfg.model.writes(0, "AUTOC")
    cfg.model.wait_check_ups(0, 6)
    ksft_eq(cfg.model.writes(0, "AUTOC"), starts)


def main():
    """ Ksft boiler plate main """

    if os.environ.get("CARD") != "82599-kx4":
        skip_program("the card has cages for modules")
    with NicModelEnv(__file__, drivers=("ixgbe_rust", ),
                     why="the messages are those of ixgbe_rust") as cfg:
        ksft_run(judged([set_up, link_by_itself, link_goes_and_comes, firmware_is_asked,
                         firmware_lets_go, link_is_there, loopback_waits_for_firmware,
                         kr_does_not_train, kr_trains,
                         forwards_after("firmware")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
