#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Interfaces set up and down, the driver loaded and unloaded, and CPUs taken
offline and online, many times.
"""

import glob
from pathlib import Path

from lib.py import KsftNamedVariant, KsftSkipEx, ksft_disruptive, ksft_eq
from lib.py import ksft_exit, ksft_run, ksft_variants
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after, traffic_intact
from lib.py.support import pages_back, rounds, wait_until


@ksft_variants([
    KsftNamedVariant("with_carrier", 0.25, True),
    KsftNamedVariant("at_once", 0.75, False),
])
@ksft_disruptive
def updown(cfg, share, carrier):
    """ Interfaces go up and down, after the carrier came or before. """
    for _ in range(int(rounds(cfg, 20, 10) * share)):
        cfg.both("up")
        if carrier:
            wait_until(lambda: all(port.attr("carrier") == "1" for port in cfg.ports),
                       20, "the carrier")
        cfg.both("down")
        if carrier:
            pages_back()


@ksft_disruptive
def updown_leaves_them_down(cfg):
    """ Both interfaces are down in the end. """
    for port in cfg.ports:
        ksft_eq(port.attr("operstate"), "down")


@ksft_variants(["up", "down", "unready"])
@ksft_disruptive
def reload(cfg, state):
    """
    The driver is unloaded with its interfaces up, down or not yet registered.
    """
    for _ in range(rounds(cfg, 20, 10) // 3 + 1):
        if state == "up":
            cfg.both("up")
        cfg.card.unload()
        cfg.card.load(wait=state != "unready")
    cfg.card.find()


@ksft_disruptive
def unload_removes_interfaces(cfg):
    """ No interface is left after unloading, and no device enabled. """
    cfg.card.unload()
    ksft_eq([port.find() for port in cfg.ports], [False, False])
    ksft_eq([port.users() for port in cfg.ports], [0, 0])
    cfg.card.load()


@ksft_disruptive
def unload_with_open_file(cfg):
    """ The driver is unloaded while a sysfs file of an interface is open. """
    path = f"/sys/class/net/{cfg.ports[0].ifname}/statistics/rx_packets"
    with open(path, encoding="utf-8") as file:
        cfg.card.unload()
        try:
            file.read()
        except OSError:
            pass
    cfg.card.load()


@ksft_disruptive
def cpu_offline_and_online(cfg):
    """ A CPU goes offline and online under traffic. """
    last = sorted(glob.glob("/sys/devices/system/cpu/cpu[0-9]*/online"))
    # Short bursts: one is to end in each state.
    cfg.start_traffic(200)
    if not last:
        raise KsftSkipEx("no CPU can go offline")
    for _ in range(10):
        for state in ("0", "1"):
            Path(last[-1]).write_text(state, encoding="utf-8")
            bursts = len(cfg.traffic.answers)
            wait_until(lambda bursts=bursts: len(cfg.traffic.answers) > bursts, 60,
                       "a burst ends")


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        ksft_run(judged([updown, updown_leaves_them_down, forwards_after("updown"),
                         reload, unload_removes_interfaces, forwards_after("reload"),
                         unload_with_open_file, forwards_after("unload_with_open_file"),
                         cpu_offline_and_online, traffic_intact("cpu_offline"),
                         forwards_after("cpu_offline")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
