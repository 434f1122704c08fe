#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Interfaces set up and down, and the driver loaded and unloaded, many times
over; and it still works.
"""

from lib.py import KsftNamedVariant, ksft_disruptive, ksft_eq, ksft_exit
from lib.py import ksft_run, ksft_variants
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import pages_back, wait_until


def _rounds(cfg):
    """ The C driver is known to be good, and its probe takes longer. """
    return 10 if cfg.driver == "ixgbe" else 50


@ksft_variants([
    KsftNamedVariant("with_carrier", 0.1, True),
    KsftNamedVariant("at_once", 0.9, False),
])
@ksft_disruptive
def updown(cfg, share, carrier):
    """ Interfaces go up, with or without waiting for the carrier, and down. """
    for _ in range(int(_rounds(cfg) * share)):
        cfg.both("up")
        if carrier:
            wait_until(lambda: all(port.attr("carrier") == "1" for port in cfg.ports),
                       20, "the carrier")
        cfg.both("down")
        if carrier:
            pages_back()


@ksft_disruptive
def updown_leaves_them_down(cfg):
    """ The state at the end of it is that which was asked for. """
    for port in cfg.ports:
        ksft_eq(port.attr("operstate"), "down")


@ksft_variants(["up", "down", "unready"])
@ksft_disruptive
def reload(cfg, state):
    """ The driver is unloaded with interfaces in this state, and loaded. """
    for _ in range(_rounds(cfg) // 3 + 1):
        if state == "up":
            cfg.both("up")
        cfg.card.unload()
        cfg.card.load(wait=state != "unready")
    cfg.card.find()


@ksft_disruptive
def unload_removes_interfaces(cfg):
    """ None is left behind, and each comes back. """
    cfg.card.unload()
    ksft_eq([port.find() for port in cfg.ports], [False, False])
    cfg.card.load()


@ksft_disruptive
def unload_with_open_file(cfg):
    """ A file of the interface is open when the driver goes. """
    path = f"/sys/class/net/{cfg.ports[0].ifname}/statistics/rx_packets"
    with open(path, encoding="utf-8") as file:
        cfg.card.unload()
        try:
            file.read()
        except OSError:
            pass
    cfg.card.load()


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        ksft_run([updown, updown_leaves_them_down, forwards_after("updown"),
                  reload, unload_removes_interfaces, forwards_after("reload"),
                  unload_with_open_file, forwards_after("unload_with_open_file")],
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
