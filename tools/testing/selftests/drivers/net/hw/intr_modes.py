#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Interrupts of a card that has separate ones for receiving, transmitting and the
link, and a single one where there is no MSI-X.
"""

from pathlib import Path

from lib.py import ksft_disruptive, ksft_eq, ksft_exit, ksft_gt, ksft_run
from lib.py.nicmodel import NicModelEnv, forwards_after

FRAMES = 2000


def _kinds(port):
    """ Return the kind of each message that the port may send. """
    found = Path("/sys/bus/pci/devices") / port.pci / "msi_irqs"
    return sorted(irq.read_text(encoding="utf-8").strip() for irq in found.iterdir())


def _counts(port):
    """ Return the number of interrupts by name, without the interface. """
    found = {}
    for line in Path("/proc/interrupts").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[-1].startswith(f"{port.ifname}-"):
            name = words[-1].removeprefix(f"{port.ifname}-")
            found[name] = sum(int(word) for word in words[1:] if word.isdigit())
    return found


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


def separate(cfg):
    """ A port has three messages, each for its own events. """
    before = [_counts(port) for port in cfg.ports]
    for port, counts in zip(cfg.ports, before, strict=True):
        ksft_eq(_kinds(port), ["msix"] * 3)
        ksft_eq(sorted(counts), ["link", "rx-0", "tx-0"])
    cfg.check_forwarded(FRAMES)
    (left, right), after = before, [_counts(port) for port in cfg.ports]
    ksft_gt(after[0]["rx-0"], left["rx-0"], "interrupts of the receiving port")
    ksft_eq(after[0]["tx-0"], left["tx-0"], "transmit interrupts of the receiving port")
    ksft_gt(after[1]["tx-0"], right["tx-0"], "interrupts of the sending port")
    ksft_eq(after[1]["rx-0"], right["rx-0"], "receive interrupts of the sending port")


@ksft_disruptive
def single(cfg):
    """ A port without MSI-X has one message, and forwards. """
    cfg.card.unload()
    cfg.card.load("msi=1")
    cfg.set_up()
    for port in cfg.ports:
        ksft_eq(_kinds(port), ["msi"])
        ksft_eq(sorted(_counts(port)), ["all-0"])
    cfg.check_forwarded(FRAMES)


@ksft_disruptive
def single_under_change(cfg):
    """ Ports with one message go down and up under traffic. """
    cfg.start_traffic()
    for _ in range(3):
        cfg.both("down")
        cfg.set_up()
    cfg.check_traffic()


@ksft_disruptive
def separate_again(cfg):
    """ The driver is loaded with MSI-X again. """
    cfg.card.unload()
    cfg.card.load()
    for port in cfg.ports:
        ksft_eq(_kinds(port), ["msix"] * 3)


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__, drivers=["rust_driver_e1000e"],
                     why="the interrupts of the driver are not separate") as cfg:
        ksft_run([set_up, separate, single, forwards_after("single"),
                  single_under_change, separate_again,
                  forwards_after("separate_again")], args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
