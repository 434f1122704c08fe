#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
AF_XDP sockets without copies for frames in several buffers: those that they get and send, what a
program makes of such frames, and which programs and MTUs go with them.
"""

import contextlib

from lib.py import CmdExitFailure, KsftNamedVariant, defer, ip, ksft_disruptive, ksft_eq
from lib.py import ksft_ge, ksft_in, ksft_raises, ksft_true, ksft_variants
from lib.py.af_xdp import NEED_WAKEUP, SEVERAL, ZEROCOPY, XdpSocket
from lib.py.bpf import XDP_DROP, XDP_PASS, XDP_TX
from lib.py.nicmodel import forwards_after
from lib.py.support import driver_stats, restart_rx_queue, rounds, wait_until
from xdp_verdicts import FRAMES, attach, attach_for_now, back, carrier_changes
from xdp_verdicts import check_sent_back, counts, run
from xsk import bound_sockets, check_reflected, reflecting, test_frame, to_sockets, unbound
from xsk import xsk_counts, xsk_since

MTU = 9000
HEADER = 14
FLAGS = ZEROCOPY | SEVERAL
# The most buffers of a frame, and the most bytes that the card sends in one.
PARTS, LONGEST = 18, 15864
# The bytes that the card writes to a chunk, by its length.
CHUNKS = [KsftNamedVariant("chunk_2048", 2048, 1024), KsftNamedVariant("chunk_4096", 4096, 3072)]
# So few are under way that there are chunks for all of them.
FEW = 8


def _longer(cfg, mtu=MTU):
    """ Let frames take several buffers until the case ends. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu {mtu}")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()
    cfg.settle()


def _sizes(buffer):
    """ In one buffer, one that is full, two, two that are full, and as many as it takes. """
    return 60, buffer, buffer + 1, 2 * buffer, MTU + HEADER


def _sockets(cfg, buffers=2048, flags=FLAGS, **kwargs):
    """ Bind sockets to all queues of port 0, and let frames take several buffers. """
    _longer(cfg)
    return bound_sockets(cfg, flags, chunk=buffers, **kwargs)


def _attached(cfg, *args, **kwargs):
    """ Attach a program for frames in several buffers to port 0 until the case ends. """
    attach_for_now(cfg, cfg.programs.add(*args, frags=True, **kwargs))


@ksft_variants(CHUNKS)
def received(cfg, chunk, buffer):
    """ A socket gets whole frames, in full buffers. """
    sockets = _sockets(cfg, chunk)
    to_sockets(cfg, sockets, frags=True)
    for size in _sizes(buffer) * 3:
        frame = test_frame(cfg, size)
        cfg.model.inject(0, frame)
        found = sockets[0].receive_parts()
        ksft_eq([b"".join(parts).hex() for parts in found], [frame.hex()])
        ksft_eq([len(part) for part in found[0][:-1]], (size - 1) // buffer * [buffer])


@ksft_variants([KsftNamedVariant(f"{chunk.name}{'_wakeup' if flag else ''}", *chunk.params, flag)
                for chunk in CHUNKS for flag in (0, NEED_WAKEUP)])
def reflected(cfg, chunk, buffer, flag):
    """ Frames that sockets send back leave whole and in order, and are counted. """
    sockets = _sockets(cfg, chunk, FLAGS | flag)
    to_sockets(cfg, sockets, frags=True)
    for size in _sizes(buffer):
        before = xsk_counts(cfg)
        with reflecting(sockets):
            check_reflected(cfg, size, FEW)
        since = xsk_since(cfg, before)
        ksft_eq((since["rx_xdp_redirected"], since["tx_xsk_frames"]), (FRAMES, FRAMES))


@ksft_variants([KsftNamedVariant(f"{name}{'_asked' if asks else ''}", *params, asks)
                for asks in (False, True) for name, *params in (
                    ("in_18", 60, 4, 1500), ("in_16", 1514, 97, 1500),
                    ("long", MTU + HEADER, 700, MTU))])
def cut(cfg, size, cut, mtu, asks):
    """
    So do those whose buffers are sent by several descriptors, also if their checksum is asked for.
    """
    _longer(cfg, mtu)
    sockets = bound_sockets(cfg, FLAGS, asks=asks)
    to_sockets(cfg, sockets, frags=True)
    for sock in sockets:
        sock.cut = cut
    before = xsk_counts(cfg)
    with reflecting(sockets):
        check_reflected(cfg, size, 4)
    ksft_eq(xsk_since(cfg, before)["tx_xsk_frames"], FRAMES)


def sent(cfg):
    """ Frames of a socket leave as a whole, or not at all, and all of their memory comes back. """
    _longer(cfg)
    sock, port = bound_sockets(cfg, FLAGS, 1, chunk=4096)[0], cfg.ports[0]
    to_sockets(cfg, [], frags=True)
    before, sent_before = xsk_counts(cfg), port.stat("tx_bytes")
    frame = test_frame(cfg, 60)
    good = [[frame], [frame[:30], frame[30:]], [frame[:1], frame[1:2], frame[2:]],
            [frame] * PARTS, [bytes(4096)] * 3 + [bytes(LONGEST - 3 * 4096)]]
    # Too short, too long, and those that have more buffers than the kernel takes.
    bad = [[bytes(8)] * 2, [bytes(4096)] * 3 + [bytes(LONGEST - 3 * 4096 + 1)]]
    ksft_true(sock.send_parts(good), "they come back in their order")
    ksft_true(sock.send_parts([good[0], bad[0], good[1], bad[1], good[2]]))
    ksft_true(sock.send_parts([bad[0]]))
    since = xsk_since(cfg, before)
    ksft_eq((since["tx_xsk_frames"], since["tx_xsk_refused"]), (8, 3))
    ksft_ge(port.stat("tx_bytes") - sent_before, 6 * 60 + PARTS * 60 + LONGEST)
    for count in (PARTS + 1, 2 * PARTS, 2 * PARTS + 1):
        ksft_true(sock.send_parts([good[0], [frame] * count, good[1]]))
    since = xsk_since(cfg, before)
    ksft_eq((since["tx_xsk_frames"], since["tx_xsk_refused"]), (14, 3))


@ksft_variants(CHUNKS)
def passed(cfg, chunk, buffer):
    """ Frames that pass are copied, with a program or without one. """
    _sockets(cfg, chunk)
    cfg.check_forwarded(FRAMES, MTU + HEADER)
    _attached(cfg, XDP_PASS)
    for size in _sizes(buffer):
        cfg.check_forwarded(FRAMES, size, window=FEW)


@ksft_variants(CHUNKS)
def sent_back(cfg, chunk, buffer):
    """ Frames that a program sends back leave whole and in order, and are counted. """
    _sockets(cfg, chunk)
    _attached(cfg, XDP_TX)
    for size in _sizes(buffer):
        before = counts(cfg)[4]
        cfg.check_forwarded(FRAMES, size, window=FEW, **back(cfg))
        ksft_eq(counts(cfg)[4] - before, FRAMES)


@ksft_variants([KsftNamedVariant("tail_in", 0, -20), KsftNamedVariant("buffer_off", 0, -500),
                KsftNamedVariant("rest_off", 0, -2100), KsftNamedVariant("tail_out", 0, 100),
                KsftNamedVariant("head_in", 16, 0), KsftNamedVariant("head_out", -32, 0)])
def moved(cfg, head, tail):
    """ All memory comes back of frames that a program has cut or made longer. """
    _sockets(cfg)
    before = counts(cfg)
    _attached(cfg, XDP_TX, head=head, tail=tail)
    for _ in range(3):
        cfg.generate(FRAMES, 2400, window=FEW, drain_ms=100, stall_ms=20)
    ksft_eq(counts(cfg)[2] - before[2], 0, "aborted")
    ksft_ge(counts(cfg)[4] - before[4], FRAMES)


def dropped(cfg):
    """ Memory of frames that a program drops is used again. """
    sockets = _sockets(cfg)
    before = xsk_counts(cfg)
    attach_for_now(cfg, cfg.programs.add(XDP_DROP, frags=True))
    answer = cfg.generate(FRAMES, MTU + HEADER, window=FEW, drain_ms=200, stall_ms=20)
    ksft_eq(answer["forwarded"], 0)
    wait_until(lambda: xsk_since(cfg, before)["rx_xdp_dropped"] >= FRAMES, 60,
               "all frames are dropped")
    to_sockets(cfg, sockets, frags=True)
    with reflecting(sockets):
        check_reflected(cfg, MTU + HEADER, FEW)


@ksft_variants([KsftNamedVariant("zerocopy", FLAGS),
                KsftNamedVariant("zerocopy_wakeup", FLAGS | NEED_WAKEUP)])
def no_memory(cfg, flags):
    """ A frame needs all of the memory that it takes. The others wait for that, or are dropped. """
    sock = _sockets(cfg, flags=flags, given=4)[0]
    to_sockets(cfg, [sock], frags=True)
    frame = test_frame(cfg, MTU + HEADER)
    # It takes nine chunks.
    for given in (0, 1, 3):
        sock.fill.put((sock.free.pop(), ) for _ in range(given))
        sock.wait(0.05)
        cfg.model.inject(0, frame)
        ksft_eq(sock.receive(0.5), [])
    sock.fill.put([(sock.free.pop(), )])
    sock.wait(0.05)
    for _ in range(10):
        cfg.model.inject(0, frame)
        ksft_eq({one == frame for one in sock.receive()}, {True})


@ksft_disruptive
def limits(cfg):
    """ The MTU, the program and the chunks of sockets go with each other. """
    port = cfg.ports[0]
    defer(ip, f"link set {port.ifname} mtu 1500")
    ip(f"link set {port.ifname} mtu {MTU}")
    with ksft_raises(OSError):
        XdpSocket(port.ifindex(), 0, ZEROCOPY)
    with contextlib.closing(XdpSocket(port.ifindex(), 0, FLAGS)) as sock:
        ksft_true(sock.is_zerocopy())
        ip(f"link set {port.ifname} mtu 1500")
        ip(f"link set {port.ifname} mtu {MTU}")
        _attached(cfg, XDP_PASS)
        for mtu in (MTU, 3000, 1767):
            ip(f"link set {port.ifname} mtu {mtu}")
            with ksft_raises(CmdExitFailure) as raised:
                attach(port, cfg.programs.add(XDP_PASS))
            ksft_in("xdp.frags" if mtu == MTU else "buffers", str(raised.exception))
        ip(f"link set {port.ifname} mtu 1766")
        attach(port, cfg.programs.add(XDP_PASS))
        with ksft_raises(CmdExitFailure):
            ip(f"link set {port.ifname} mtu 1767")
    unbound(cfg)


@ksft_disruptive
def grown(cfg):
    """ Frames that come to need several buffers get those. """
    _check_grows(cfg, 2048)


@ksft_variants([KsftNamedVariant(f"chunk_{chunk}", chunk) for chunk in (2048, 4096)])
@ksft_disruptive
def grown_after_one(cfg, chunk):
    """ So do those of a ring that was made for a program for frames in one buffer. """
    attach_for_now(cfg, cfg.programs.add(XDP_PASS))
    _check_grows(cfg, chunk)


def _check_grows(cfg, chunk):
    cfg.settle()
    sockets = bound_sockets(cfg, FLAGS, chunk=chunk)
    to_sockets(cfg, sockets, frags=True)
    with reflecting(sockets):
        check_reflected(cfg, 1514)
        for mtu in (1766, MTU, 1500):
            for port in cfg.ports:
                ip(f"link set {port.ifname} mtu {mtu}")
            cfg.set_up()
            check_reflected(cfg, mtu + HEADER, FEW)


@ksft_disruptive
def one_after_several(cfg):
    """ A program for frames in one buffer gets those whole that took several before. """
    sockets = _sockets(cfg)
    port = cfg.ports[0]
    to_sockets(cfg, sockets, frags=True)
    with reflecting(sockets):
        check_reflected(cfg, MTU + HEADER, FEW)
    for each in cfg.ports:
        ip(f"link set {each.ifname} mtu 1500")
    attach(port, cfg.programs.add(XDP_TX))
    cfg.set_up()
    before = counts(cfg)[2]
    check_sent_back(cfg, FRAMES, 1514)
    ksft_eq(counts(cfg)[2], before, "aborted")


@ksft_disruptive
def restarted(cfg):
    """ Queues and the port restart while sockets send back what they receive. """
    sockets, port = _sockets(cfg), cfg.ports[0]
    to_sockets(cfg, sockets, frags=True)
    with reflecting(sockets):
        cfg.start_traffic(flows=64, size=3000, stall_ms=100, window=FEW, **back(cfg))
        for _ in range(rounds(cfg, 5, 2)):
            flaps = carrier_changes(port)
            for queue in range(cfg.queues):
                restart_rx_queue(port.ifindex(), queue)
            ksft_eq(carrier_changes(port), flaps)
            ip(f"link set {port.ifname} down")
            ip(f"link set {port.ifname} up")
            cfg.card.wait_up()
        cfg.check_traffic()
        cfg.set_up()
        check_reflected(cfg, MTU + HEADER, FEW)
    ksft_eq(driver_stats(port.ifname)["rx_bad_descriptors"], 0)


def main():
    """ Ksft boiler plate main """

    run(__file__, [received, reflected, cut, sent, passed, sent_back, moved, dropped, no_memory,
                   forwards_after("sockets"), limits, grown, grown_after_one,
                   one_after_several, restarted, forwards_after("all")])


if __name__ == "__main__":
    main()
