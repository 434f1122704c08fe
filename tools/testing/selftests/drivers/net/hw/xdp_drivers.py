#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
XDP programs on any driver of the abstractions: verdicts by the frames that come out, which takes no
counter of a card.
"""

from lib.py import CmdExitFailure, defer, ip, ksft_disruptive, ksft_eq, ksft_raises, ksft_variants
from lib.py.bpf import XDP_DROP, XDP_PASS, XDP_TX
from lib.py.nicmodel import forwards_after
from xdp_verdicts import FRAMES, attach, attached, back, check_sent_back, detach, passed
from xdp_verdicts import replaced_without_loss, run

JUMBO = 9000


def _jumbo(cfg):
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu {JUMBO}")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()
    cfg.settle()


def dropped(cfg):
    """ No frame comes out that a program drops, however many there are. """
    cfg.settle()
    attached(cfg, XDP_DROP)
    answer = cfg.generate(4 * FRAMES, drain_ms=200, stall_ms=200)
    ksft_eq((answer["sent"], answer["forwarded"]), (4 * FRAMES, 0))


@ksft_variants((60, 1514))
def returned(cfg, size):
    """ Frames that a program sends back leave whole and in order. """
    cfg.settle()
    attached(cfg, XDP_TX)
    check_sent_back(cfg, FRAMES, size)


@ksft_disruptive
def several_buffers(cfg):
    """ Programs that can do with frames in several buffers have them pass, or send them back. """
    _jumbo(cfg)
    attached(cfg, XDP_PASS, frags=True)
    cfg.check_forwarded(FRAMES, JUMBO + 14)
    attach(cfg.ports[0], cfg.programs.add(XDP_TX, frags=True))
    cfg.check_forwarded(FRAMES, JUMBO + 14, **back(cfg))


@ksft_disruptive
def one_buffer(cfg):
    """ Other programs and a great MTU exclude each other. """
    port, program = cfg.ports[0], cfg.programs.add(XDP_PASS)
    attach(port, program)
    with ksft_raises(CmdExitFailure):
        ip(f"link set {port.ifname} mtu {JUMBO}")
    detach(port)
    _jumbo(cfg)
    with ksft_raises(CmdExitFailure):
        attach(port, program)


def main():
    """ Ksft boiler plate main """

    run(__file__, [passed, dropped, forwards_after("dropping"), returned, several_buffers,
                   one_buffer, replaced_without_loss, forwards_after("all")],
        ("ixgbe_rust", "rust_driver_e1000e"))


if __name__ == "__main__":
    main()
