#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
The link goes away while packets are queued: the device stops transmitting, and
the driver has to drop them, rather than keep them until the link is back.
"""

import contextlib

from lib.py import ip, ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_run
from lib.py.nicmodel import judged
from lib.py.nicmodel import NicModelEnv, forwards_after
from lib.py.support import kernel_log, skip_program, wait_until
from segmentation import build_packet, send_to_split

# Datagrams that the device cuts out of one packet, and their bytes.
SEGMENTS, SIZE = 40, 1400
RESETS = {
    "ixgbe": "initiating reset to clear Tx work after link loss",
    "ixgbe_rust": "restarting to clear TX work after link loss",
}


def set_up(cfg):
    """ Addresses, routes and neighbours are set, and both links are up. """
    cfg.set_up()


def cut(cfg):
    """ Take the link away when a packet is about to be sent, in the middle of traffic. """
    cfg.start_traffic()
    cfg.traffic.flows()
    cfg.model.fault(1, "lost_link")
    wait_until(lambda: cfg.ports[1].attr("carrier") == "0", 60, "the carrier is gone")


def plug_in_again(cfg):
    """ Bring the link back. """
    cfg.model.link(1, True)
    cfg.card.wait_up()


def plug_in(cfg):
    """ The same, and end the traffic. """
    plug_in_again(cfg)
    cfg.check_traffic()


@ksft_disruptive
def drops_what_is_queued(cfg):
    """ The driver resets the device, which drops the packets, and does so once. """
    log = kernel_log()
    said = RESETS[cfg.driver]
    cut(cfg)
    try:
        wait_until(lambda: said in kernel_log()[len(log):], 60, "the device is reset")
        # The reset reads counters, too. After it, there is nothing left to drop.
        cfg.model.wait_check_ups(1, 4)
    finally:
        plug_in(cfg)
    ksft_eq(kernel_log()[len(log):].count(said), 1)


@ksft_disruptive
def goes_down_without_link(cfg):
    """ An interface can go down and up while the link is away. """
    cut(cfg)
    try:
        ip(f"link set {cfg.ports[1].ifname} down")
        ip(f"link set {cfg.ports[1].ifname} up")
        ksft_eq(cfg.ports[1].attr("carrier"), "0")
    finally:
        cfg.model.link(1, True)
    cfg.set_up()
    cfg.check_traffic()


def _counted(cfg):
    """ Return packets and bytes of the second port: as it counts them, and on its wire. """
    port, wire = cfg.ports[1], cfg.model.stats(1)
    return [int(port.stat(f"tx_{name}")) for name in ("packets", "bytes")] + [
        wire[f"tx_{name}"] for name in ("frames", "bytes")]


@ksft_disruptive
def segments_that_are_lost_do_not_count(cfg):
    """ Packets count as sent, and as many as the device makes of them, when they have left. """
    port = cfg.ports[1]
    packet, transport = build_packet(bytes.fromhex("02feedfeedfe02feedfeed01"), "udp4",
                                     SEGMENTS * SIZE, 0, 0)

    def send():
        send_to_split(port.ifname, "udp4", packet, transport, SIZE)

    cfg.settle()
    before, log = _counted(cfg), kernel_log()
    send()
    cfg.settle()
    cfg.model.fault(1, "lost_link")
    with contextlib.suppress(OSError):
        while port.attr("carrier") == "1":
            send()
    try:
        wait_until(lambda: RESETS[cfg.driver] in kernel_log()[len(log):], 60,
                   "the device is reset")
        # As above: with a link before the reset, they would leave.
        cfg.model.wait_check_ups(1, 4)
    finally:
        plug_in_again(cfg)
    cfg.settle()
    packets, size, frames, on_wire = [
        now - was for now, was in zip(_counted(cfg), before, strict=True)]
    ksft_ge(packets, SEGMENTS, "packets sent")
    ksft_ge(frames, packets, "frames on the wire, and packets counted as sent")
    ksft_ge(on_wire, size, "bytes on the wire, and counted as sent")
    # That in transmission when the link went away may be on the wire.
    ksft_ge(packets + SEGMENTS, frames, "packets sent, and frames on the wire")


def main():
    """ Ksft boiler plate main """

    with NicModelEnv(__file__) as cfg:
        if not cfg.model.ask("judge")["judged"]:
            skip_program("only a judged card stops sending without a link")
        ksft_run(judged([set_up,
                         drops_what_is_queued, forwards_after("link_loss"),
                         goes_down_without_link, forwards_after("down"),
                         segments_that_are_lost_do_not_count, forwards_after("segments")]),
                 args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
