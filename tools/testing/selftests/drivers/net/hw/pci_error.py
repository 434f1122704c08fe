#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Ports that are reset by the bus: on request, and to recover from errors.

Errors are injected into the root port of a device (aer_inject), so that the
kernel resets what is behind it.
"""

import errno
import os
import struct
from pathlib import Path

from lib.py import KsftNamedVariant, KsftSkipEx, ksft_disruptive, ksft_eq, ksft_exit
from lib.py import ksft_ge, ksft_run, ksft_variants
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.nicmodel import traffic_intact
from lib.py.support import kernel_log, wait_until

INJECT = "/dev/aer_inject"
# Uncorrectable errors: of the protocol of a link, which is fatal, and a request
# that was not answered, which is not.
FATAL = 1 << 4
NONFATAL = 1 << 14
RECOVERED = "device recovery successful"
SEVERITIES = [KsftNamedVariant("fatal", FATAL), KsftNamedVariant("nonfatal", NONFATAL)]


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


def _device(port):
    return Path("/sys/bus/pci/devices") / port.pci


def reset_function(port):
    """ Have the kernel reset a port. """
    if not port.reset_function():
        raise KsftSkipEx("the kernel has no way to reset the port")


def _needs_injection():
    if not os.path.exists(INJECT):
        raise KsftSkipEx("needs CONFIG_PCIEAER_INJECT")


def inject(port, status):
    """ Inject an error into the root port of a port, and wait until it was handled. """
    _needs_injection()
    root = _device(port).resolve().parent.name
    bus, _, slot = root.partition(":")[2].partition(":")
    dev, _, fn = slot.partition(".")
    handled = kernel_log().count(RECOVERED)
    with open(INJECT, "wb", buffering=0) as file:
        try:
            file.write(struct.pack("=3Bx7I", int(bus, 16), int(dev, 16), int(fn),
                                   status, 0, 0, 0, 0, 0, 0))
        except OSError as error:
            if error.errno != errno.EPROTONOSUPPORT:
                raise
            raise KsftSkipEx("the kernel reaches no AER registers of the "
                             "root port (CONFIG_PCI_MMCONFIG)") from error
    wait_until(lambda: kernel_log().count(RECOVERED) > handled, 30,
               "the kernel has recovered from the error")


def _resets(cfg, port):
    return cfg.model.stats(port.number)["resets"]


@ksft_disruptive
def reset_while_down(cfg):
    """ A port that is down is reset, and goes up after that. """
    cfg.both("down")
    for port in cfg.ports:
        before = _resets(cfg, port)
        reset_function(port)
        ksft_eq(port.attr("operstate"), "down")
        ksft_ge(_resets(cfg, port), before + 1, "the card has lost its state")


@ksft_disruptive
def reset_under_traffic(cfg):
    """ Each port in turn is reset under traffic, and comes back by itself. """
    cfg.set_up()
    cfg.start_traffic()
    for count in range(6):
        port = cfg.ports[count % 2]
        reset_function(port)
        cfg.card.wait_up()
    ksft_eq([port.is_bus_master() for port in cfg.ports], [True, True])


@ksft_variants(SEVERITIES)
@ksft_disruptive
def error_while_down(cfg, status):
    """ A port that is down recovers from an error. """
    cfg.both("down")
    inject(cfg.ports[0], status)
    ksft_eq(cfg.ports[0].attr("operstate"), "down")


@ksft_variants(SEVERITIES)
@ksft_disruptive
def error_under_traffic(cfg, status):
    """ A port recovers from errors under traffic. """
    _needs_injection()
    cfg.set_up()
    cfg.start_traffic()
    for count in range(4):
        inject(cfg.ports[count % 2], status)
        cfg.card.wait_up()
    cfg.check_traffic()


@ksft_disruptive
def unbound_after_errors(cfg):
    """ A port that the kernel has recovered is unbound, and bound again. """
    _needs_injection()
    cfg.set_up()
    port = cfg.ports[0]
    for _ in range(3):
        inject(port, FATAL)
        port.unbind()
        port.bind(cfg.driver)
        cfg.set_up()


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="the driver is not under test") as cfg:
        ksft_run([set_up,
                  reset_while_down, forwards_after("reset_while_down"),
                  reset_under_traffic, traffic_intact("reset"), forwards_after("reset"),
                  error_while_down, forwards_after("error_while_down"),
                  error_under_traffic, forwards_after("error_under_traffic"),
                  unbound_after_errors, forwards_after("unbind")], args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
