#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
The machine sleeps and wakes up, with the interfaces down, up, and under traffic.

The kernel goes through all steps of a suspend, but wakes up instead of calling
the firmware (pm_test). The card loses its registers meanwhile.
"""

from pathlib import Path

from lib.py import ip, ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_run
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.nicmodel import traffic_intact
from lib.py.support import kernel_log, skip_program

POWER = Path("/sys/power")
DELAY = Path("/sys/module/suspend/parameters/pm_test_delay")


def offers_sleep():
    """ Check whether the kernel can go through the steps of a suspend. """
    return (POWER / "pm_test").exists() and "freeze" in (POWER / "state").read_text(
        encoding="utf-8")


def sleep():
    """ Put the machine to sleep for a second. """
    DELAY.write_text("1", encoding="utf-8")
    (POWER / "pm_test").write_text("platform", encoding="utf-8")
    try:
        (POWER / "state").write_text("freeze", encoding="utf-8")
    finally:
        (POWER / "pm_test").write_text("none", encoding="utf-8")


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


@ksft_disruptive
def sleeps_while_down(cfg):
    """ Interfaces that are down stay down, and go up after that. """
    cfg.both("down")
    before = [cfg.model.stats(port.number)["resets"] for port in cfg.ports]
    sleep()
    for port, resets in zip(cfg.ports, before, strict=True):
        ksft_eq(port.attr("operstate"), "down")
        ksft_ge(cfg.model.stats(port.number)["resets"], resets + 1,
                "the card has lost its state")


@ksft_disruptive
def sleeps_while_up(cfg):
    """ Interfaces that are up come back with all that was set. """
    cfg.set_up()
    ip(f"link set {cfg.ports[0].ifname} mtu 4000")
    try:
        for _ in range(2):
            sleep()
            cfg.card.wait_up()
            cfg.settle()
            cfg.check_forwarded(300)
        ksft_eq(cfg.ports[0].attr("mtu"), "4000")
        # Larger than the default of the card.
        ip(f"link set {cfg.ports[1].ifname} mtu 4000")
        cfg.check_forwarded(100, 3000)
    finally:
        for port in cfg.ports:
            ip(f"link set {port.ifname} mtu 1500")


@ksft_disruptive
def sleeps_under_traffic(cfg):
    """ Traffic goes on after each of several sleeps. """
    cfg.set_up()
    cfg.start_traffic()
    before = cfg.ports[0].stat("rx_packets")
    for _ in range(3):
        sleep()
        cfg.card.wait_up()
        after = cfg.ports[0].stat("rx_packets")
        ksft_ge(after, before, "counters do not go back")
        before = after


def nothing_touched_a_sleeping_card(cfg):
    """ No register was accessed while the card slept. """
    for port in cfg.ports:
        ksft_eq(cfg.model.stats(port.number)["asleep_accesses"], 0)
        ksft_eq(f"{port.pci}: PM: failed" in kernel_log(), False)


def main():
    """ Ksft boiler plate main """

    if not offers_sleep():
        skip_program("needs a kernel that can sleep (CONFIG_PM_SLEEP_DEBUG)")
    with NicModelEnv(__file__, drivers=["ixgbe_rust"],
                     why="the driver is not under test") as cfg:
        ksft_run([set_up, sleeps_while_down, forwards_after("sleep_while_down"),
                  sleeps_while_up, forwards_after("sleep_while_up"),
                  sleeps_under_traffic, traffic_intact("sleep"),
                  forwards_after("sleep_under_traffic"),
                  nothing_touched_a_sleeping_card], args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
