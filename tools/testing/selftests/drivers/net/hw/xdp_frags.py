#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
XDP programs that can do with frames in several buffers: verdicts, ends that they move, and limits.
"""

import struct

from lib.py import CmdExitFailure, KsftNamedVariant, defer, ip, ksft_disruptive, ksft_eq, ksft_in
from lib.py import ksft_raises, ksft_variants
from lib.py.bpf import XDP_DROP, XDP_PASS, XDP_TX
from lib.py.nicmodel import forwards_after
from lib.py.support import restart_rx_queue, rounds, wait_until
from xdp_verdicts import ETH_P_TEST, FRAMES, MAX_MTU, PEER, attach, attach_for_now, back
from xdp_verdicts import carrier_changes, check_redirected, check_sent_back, counts, detach
from xdp_verdicts import listen, run

MTU = 9000
HEADER = 14
# The bytes that the card writes to a buffer.
BUFFER = 3072
# In one buffer, one that is full, two, two that are full, and three.
SIZES = (60, BUFFER, BUFFER + 1, 2 * BUFFER, MTU + HEADER)


def _longer(cfg):
    """ Let frames take several buffers until the case ends. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu {MTU}")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()


def _attached(cfg, *args, **kwargs):
    """ Attach a program to port 0 for frames in several buffers until the case ends. """
    _longer(cfg)
    cfg.settle()
    attach_for_now(cfg, cfg.programs.add(*args, frags=True, **kwargs))


@ksft_variants(SIZES)
def passed(cfg, size):
    """ Frames that pass come out as they came in. """
    _attached(cfg, XDP_PASS)
    cfg.check_forwarded(FRAMES, size)


def passed_in_turn(cfg):
    """ Frames in one buffer pass among those in several. """
    _attached(cfg, XDP_PASS)
    for size in SIZES * 3:
        cfg.check_forwarded(20, size)


@ksft_variants(SIZES)
def dropped(cfg, size):
    """ No frame comes out that a program drops. All of them are counted. """
    _longer(cfg)
    cfg.settle()
    attach_for_now(cfg, cfg.programs.add(XDP_DROP, frags=True))
    before = counts(cfg)[1]
    # More than a ring has room for, so buffers go round.
    answer = cfg.generate(4 * FRAMES, size, drain_ms=200, stall_ms=500)
    ksft_eq((answer["sent"], answer["forwarded"]), (4 * FRAMES, 0))
    wait_until(lambda: counts(cfg)[1] - before >= 4 * FRAMES, 10, "all frames are counted")


@ksft_variants(SIZES)
def sent_back(cfg, size):
    """ Frames that a program sends back leave whole and in order, and are counted. """
    _longer(cfg)
    cfg.settle()
    attach_for_now(cfg, cfg.programs.add(XDP_TX, frags=True))
    before = counts(cfg)[4]
    check_sent_back(cfg, FRAMES, size)
    ksft_eq(counts(cfg)[4] - before, FRAMES)


@ksft_variants([KsftNamedVariant("head_in", 16, 0), KsftNamedVariant("tail_in", 0, -20),
                KsftNamedVariant("buffer_off", 0, -500), KsftNamedVariant("rest_off", 0, -4000),
                KsftNamedVariant("tail_out", 0, 100), KsftNamedVariant("both", 16, 8)])
def moved(cfg, head, tail):
    """ A frame that a program has cut or made longer arrives so. """
    port = cfg.ports[0]
    mac = bytes.fromhex(port.mac().replace(":", ""))
    payload = bytes(number % 251 for number in range(2 * BUFFER + 100))
    frame = mac + PEER + struct.pack("!H", ETH_P_TEST) + payload
    outer = bytes(range(16))[:head]
    expected = frame[:len(frame) + min(tail, 0)] + bytes(max(tail, 0))
    _attached(cfg, XDP_PASS, head=head, tail=tail)
    with listen(port) as sock:
        for _ in range(3):
            # The card takes frames to its own address.
            cfg.model.inject(0, mac + outer[6:] + frame if head else frame)
            ksft_eq(sock.recv(10000).hex(), expected.hex())


def redirected(cfg):
    """ Frames that a program redirects arrive there, all of them and whole. """
    _longer(cfg)
    payload = bytes(number % 251 for number in range(2 * BUFFER + 100))
    check_redirected(cfg, 7000, payload, MTU, frags=True)


@ksft_disruptive
def attached_under_traffic(cfg):
    """ Programs come and go under traffic, and the link stays up. """
    _longer(cfg)
    port = cfg.ports[0]
    cfg.start_traffic(flows=64, size=MTU + HEADER)
    before = carrier_changes(port)
    for _ in range(rounds(cfg, 10, 2)):
        attach(port, cfg.programs.add(XDP_PASS, frags=True))
        detach(port)
        # Back to the buffers of before.
        for queue in range(cfg.queues):
            restart_rx_queue(port.ifindex(), queue)
    ksft_eq(carrier_changes(port), before, "changes of the carrier")
    cfg.check_traffic()


@ksft_disruptive
def restarted_while_sending(cfg):
    """ Queues get other memory while their frames are sent, and the link stays up. """
    port = cfg.ports[0]
    _longer(cfg)
    cfg.settle()
    attach_for_now(cfg, cfg.programs.add(XDP_TX, frags=True))
    before = carrier_changes(port)
    cfg.start_traffic(flows=64, size=MTU + HEADER, **back(cfg))
    for _ in range(rounds(cfg, 20, 3)):
        for queue in range(cfg.queues):
            restart_rx_queue(port.ifindex(), queue)
    cfg.check_traffic()
    ksft_eq(carrier_changes(port), before, "changes of the carrier")
    check_sent_back(cfg, FRAMES, MTU + HEADER)


@ksft_disruptive
def longer_than_the_limit(cfg):
    """ A program for frames in one buffer takes its place only if all of them are. """
    port = cfg.ports[0]
    one, several = cfg.programs.add(XDP_PASS), cfg.programs.add(XDP_PASS, frags=True)
    _longer(cfg)
    with ksft_raises(CmdExitFailure) as raised:
        attach(port, one)
    ksft_in(f"the MTU is more than {MAX_MTU}", str(raised.exception))
    attach_for_now(cfg, several)
    attach(port, several)
    with ksft_raises(CmdExitFailure):
        attach(port, one)
    ip(f"link set {port.ifname} mtu {MAX_MTU}")
    attach(port, one)
    with ksft_raises(CmdExitFailure):
        ip(f"link set {port.ifname} mtu {MAX_MTU + 1}")
    attach(port, several)
    ip(f"link set {port.ifname} mtu {MTU}")
    cfg.set_up()
    cfg.settle()
    cfg.check_forwarded(FRAMES, MTU + HEADER)


def main():
    """ Ksft boiler plate main """

    run(__file__, [passed, passed_in_turn, dropped, sent_back, moved, redirected,
                   forwards_after("verdicts"), attached_under_traffic,
                   forwards_after("attaching"), restarted_while_sending,
                   forwards_after("sending"), longer_than_the_limit, forwards_after("all")])


if __name__ == "__main__":
    main()
