#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
A device that is removed under traffic: the driver has to survive that, and to
recover when it is back.

This is a program of its own, since it leaves mappings behind. All others are
held to none.
"""

import re

from lib.py import cmd, ethtool, ksft_disruptive, ksft_eq, ksft_exit, ksft_run
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import kernel_log, provokes


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


@ksft_disruptive
def pulled_out(cfg):
    """
    The driver can be unbound from a removed device, which reads as all ones,
    after down, up and ethtool -S. It does not wait for what cannot answer. The
    bus does not know that the device is gone, so its memory is not freed.
    """
    provokes("mappings left behind")
    port = cfg.ports[0]
    before = len(kernel_log().splitlines())
    cfg.start_traffic()
    cfg.traffic.flows()
    cfg.model.fault(0, "remove")
    # Each check-up looks whether the card is gone.
    cfg.model.wait_reads(0, "STATUS", 3)
    cmd(f"ip link set {port.ifname} down", fail=False)
    ethtool(f"-S {port.ifname}")
    cmd(f"ip link set {port.ifname} up", fail=False)
    port.unbind()
    ksft_eq([line for line in kernel_log().splitlines()[before:]
             if re.search("stop in time|not complete|still pending", line)], [])


@ksft_disruptive
def back_in_place(cfg):
    """ The driver binds to the device when it is back. """
    cfg.bind_again()


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="the driver waits for a removed device") as cfg:
        ksft_run(judged([set_up, pulled_out, back_in_place, forwards_after("pulled_out")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
