#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
AF_XDP sockets: frames that a program redirects to them, and that they send, with copies and without
them. Sockets come and go under traffic.
"""

import contextlib
import errno
import os
import shutil
import struct
from pathlib import Path

from lib.py import CmdExitFailure, KsftNamedVariant, KsftSkipEx, cmd, defer, ethtool, ip
from lib.py import ksft_disruptive, ksft_eq, ksft_ge, ksft_in, ksft_raises, ksft_true
from lib.py import ksft_variants
from lib.py.af_xdp import COPY, NEED_WAKEUP, ZEROCOPY, LibrarySocket, Reflector, XdpSocket
from lib.py.af_xdp import bound
from lib.py.bpf import XDP_DROP, XDP_PASS, XDP_TX, put_socket, socket_map, socket_program
from lib.py.nicmodel import forwards_after
from lib.py.support import Task, driver_stats, restart_rx_queue, rounds, wait_until
from xdp_verdicts import ETH_P_TEST, FRAMES, PEER, attach_for_now, attached, back
from xdp_verdicts import carrier_changes, check_sent_back, detach, run

# The greatest MTU with which a frame with two tags fits into a short chunk.
MAX_MTU = 1766
HEADER = 14
MODES = [KsftNamedVariant("copy", COPY), KsftNamedVariant("copy_wakeup", COPY | NEED_WAKEUP),
         KsftNamedVariant("zerocopy", ZEROCOPY),
         KsftNamedVariant("zerocopy_wakeup", ZEROCOPY | NEED_WAKEUP)]
ZEROCOPIES = MODES[2:]
# A ring with room for four groups of frames that the card reports together, and numbers of frames
# that fill such groups or do not, some of which are more than the ring has room for.
SHORT_RING, BATCHES = 128, (240, 33, 127, 1, 128, 95, 64)


def xsk_counts(cfg):
    stats = driver_stats(cfg.ports[0].ifname)
    return {name: stats.get(name, 0) for name in (
        "rx_xdp_redirected", "rx_xdp_aborted", "rx_xdp_dropped", "tx_xsk_frames", "tx_xsk_refused",
        "tx_packets")}


def xsk_since(cfg, before):
    return {name: value - before[name] for name, value in xsk_counts(cfg).items()}


def came_in(answer):
    """ Return the number of frames that the driver has got, or will get, of a generator's. """
    return answer["sent"] - sum(count for why, count in answer["lost"].items()
                                if why != "in_guest")


def to_sockets(cfg, sockets, other=XDP_PASS, **kwargs):
    """ Attach a program until the case ends that redirects frames to sockets, by queue. """
    table = socket_map(cfg.queues)
    defer(os.close, table)
    for queue, sock in enumerate(sockets):
        put_socket(table, queue, sock)
    attach_for_now(cfg, cfg.programs.name(socket_program(table, other, **kwargs)))


def bound_sockets(cfg, flags, queues=None, **kwargs):
    """ Bind sockets to all queues of port 0 until the case ends. """
    sockets = bound(cfg.ports[0].ifindex(), queues or cfg.queues, flags, **kwargs)
    # After they have been closed.
    defer(unbound, cfg)
    for sock in sockets:
        defer(sock.close)
        ksft_eq(sock.is_zerocopy(), bool(flags & ZEROCOPY))
    return sockets


def unbound(cfg):
    """ Wait until the sockets of all queues have gone, a while after they were closed. """
    for sock in bound(cfg.ports[0].ifindex(), cfg.queues, COPY):
        sock.close()


@contextlib.contextmanager
def reflecting(sockets):
    """ In a block, have sockets send back what they receive. """
    reflector = Reflector(sockets)
    try:
        yield reflector
    finally:
        reflector.stop()


def check_reflected(cfg, size=60, window=64):
    """
    Check that frames leave whole and in order that sockets send back. Few are under way: a user
    that gets no processor loses others.
    """
    cfg.check_forwarded(FRAMES, size, window=window, **back(cfg))


def test_frame(cfg, size):
    mac = bytes.fromhex(cfg.ports[0].mac().replace(":", ""))
    header = mac + PEER + struct.pack("!H", ETH_P_TEST)
    return header + bytes(number % 251 for number in range(size - len(header)))


@ksft_variants(MODES)
def received(cfg, flags):
    """ A socket gets whole frames, also the longest ones, in short chunks. """
    cfg.settle()
    sockets = bound_sockets(cfg, flags)
    to_sockets(cfg, sockets)
    for size in (60, 128, 1514) * 3:
        frame = test_frame(cfg, size)
        cfg.model.inject(0, frame)
        found = sockets[0].receive()
        ksft_eq([one.hex() for one in found], [frame.hex()])


@ksft_variants([KsftNamedVariant(f"{mode.name}_{size}", *mode.params, size)
                for mode in MODES for size in (60, 1514)])
def reflected(cfg, flags, size):
    """ Frames that sockets send back leave whole and in order, and are counted. """
    cfg.settle()
    sockets = bound_sockets(cfg, flags)
    to_sockets(cfg, sockets)
    before = xsk_counts(cfg)
    with reflecting(sockets):
        check_reflected(cfg, size)
    counts = xsk_since(cfg, before)
    ksft_eq(counts["rx_xdp_redirected"], FRAMES)
    ksft_eq(counts["tx_xsk_frames"], FRAMES if flags & ZEROCOPY else 0)
    # Those of copies are counted when they are completed.
    if flags & ZEROCOPY:
        ksft_ge(counts["tx_packets"], FRAMES)


@ksft_variants(MODES)
def by_library(cfg, flags):
    """ Users of a library that is not ours send back what they receive. """
    if not shutil.which(LibrarySocket.PROGRAM):
        raise KsftSkipEx(f"needs {LibrarySocket.PROGRAM}")
    cfg.settle()
    defer(unbound, cfg)
    sockets = [LibrarySocket(cfg.ifname, queue, flags) for queue in range(cfg.queues)]
    for sock in sockets:
        defer(sock.close)
    to_sockets(cfg, sockets)
    before = xsk_counts(cfg)
    for size in (60, 1514):
        check_reflected(cfg, size)
    counts = xsk_since(cfg, before)
    ksft_eq(counts["tx_xsk_frames"], counts["rx_xdp_redirected"] if flags & ZEROCOPY else 0)
    ksft_eq(counts["rx_xdp_redirected"], 2 * FRAMES)


@ksft_variants(MODES)
def sent(cfg, flags):
    """ Frames that a socket sends are sent without any that are received. """
    sock, port = bound_sockets(cfg, flags, 1)[0], cfg.ports[0]
    to_sockets(cfg, [])
    cfg.settle()
    before = port.stat("tx_packets")
    for count in (1, 7, 64, 100):
        ksft_true(sock.send([test_frame(cfg, 60 + number) for number in range(count)]),
                  "they come back in their order")
    ksft_ge(port.stat("tx_packets") - before, 172)


@ksft_variants(ZEROCOPIES)
def sent_without_program(cfg, flags):
    """ A socket on a port without a program learns that nothing is sent; with one, it is. """
    sock = bound_sockets(cfg, flags, 1)[0]
    for _ in range(2):
        with ksft_raises(OSError) as raised:
            sock.call()
        ksft_eq(raised.exception.errno, errno.ENXIO)
        to_sockets(cfg, [])
        ksft_true(sock.send([test_frame(cfg, 60)]), "the frame is sent")
        detach(cfg.ports[0])


@ksft_variants(ZEROCOPIES)
def too_short(cfg, flags):
    """ Frames that the card cannot send come back in their turn, and are counted. """
    sock, port = bound_sockets(cfg, flags, 1)[0], cfg.ports[0]
    to_sockets(cfg, [])
    cfg.settle()
    before, dropped_before = xsk_counts(cfg), port.stat("tx_dropped")
    short, whole = bytes(16), test_frame(cfg, 60)
    for frames in ([short], [whole, short, whole], [short, short, whole], [whole, short]):
        ksft_true(sock.send(frames), "they come back in their order")
    counts = xsk_since(cfg, before)
    ksft_eq((counts["tx_xsk_refused"], counts["tx_xsk_frames"]), (5, 4))
    ksft_eq(port.stat("tx_dropped") - dropped_before, 5)


@ksft_variants([KsftNamedVariant(f"{mode.name}_{size}", *mode.params, size)
                for mode in MODES for size in (60, 1514)])
def checksum_asked(cfg, flags, size):
    """ The card, or the kernel, inserts the checksum into frames that sockets send back. """
    cfg.settle()
    sockets = bound_sockets(cfg, flags, asks=True)
    to_sockets(cfg, sockets)
    with reflecting(sockets):
        check_reflected(cfg, size)


@ksft_variants(ZEROCOPIES)
def checksum_refused(cfg, flags):
    """ Checksums that are nowhere in the frame, or that the card does not know of, are refused. """
    sock = bound_sockets(cfg, flags, 1, asks=True)[0]
    to_sockets(cfg, [])
    cfg.settle()
    before = xsk_counts(cfg)
    frame = test_frame(cfg, 60)
    # Those without one are sent.
    requests = [(), (34, 8), (44, 16), (), (13, 6), (33, 6), (1000, 6), (65535, 65535), ()]
    places = [sock.free.pop() + 1024 for _ in requests]
    for at, request in zip(places, requests, strict=True):
        sock.write(at, frame)
        sock.tx.put([(at, len(frame), sock.ask(at, *request) if request else 0)])
    end = []

    def are_back():
        sock.kick()
        end.extend(at for at, in sock.completion.take())
        return len(end) == len(places)

    wait_until(are_back, 20, "all of them come back")
    ksft_eq(end, places, "in their order")
    counts = xsk_since(cfg, before)
    ksft_eq((counts["tx_xsk_frames"], counts["tx_xsk_refused"]), (3, 6))


def features(cfg):
    """ Users are told what they can ask for, and how many buffers a frame may have. """
    said = cfg.netnl.dev_get({"ifindex": cfg.ports[0].ifindex()})
    ksft_eq((sorted(said["xsk-features"]), said["xdp-zc-max-segs"]), (["tx-checksum"], 18))


@ksft_variants(ZEROCOPIES)
@ksft_disruptive
def short_ring(cfg, flags):
    """ More frames than a ring has room for leave in their order, and some cannot be sent. """
    port = cfg.ports[0]
    ethtool(f"-G {port.ifname} rx {SHORT_RING}")
    defer(ethtool, f"-G {port.ifname} rx 512")
    cfg.settle()
    sockets = bound_sockets(cfg, flags)
    to_sockets(cfg, sockets)
    before, refused = xsk_counts(cfg), 0
    for count in BATCHES:
        frames = [bytes(16) if number % 31 == 30 else test_frame(cfg, 60 + number)
                  for number in range(count)]
        refused += count // 31
        ksft_true(sockets[0].send(frames), "they come back in their order")
    counts = xsk_since(cfg, before)
    ksft_eq((counts["tx_xsk_refused"], counts["tx_xsk_frames"]),
            (refused, sum(BATCHES) - refused))
    with reflecting(sockets):
        cfg.check_forwarded(FRAMES, 60, window=SHORT_RING - 8, **back(cfg))


@ksft_variants(ZEROCOPIES)
def passed(cfg, flags):
    """ Frames that pass are copied, with a program or without one. """
    cfg.settle()
    bound_sockets(cfg, flags)
    cfg.check_forwarded(FRAMES, 1514)
    to_sockets(cfg, [])
    for size in (60, 1514):
        cfg.check_forwarded(FRAMES, size)


@ksft_variants(ZEROCOPIES)
def sent_back(cfg, flags):
    """ Frames that a program sends back leave whole and in order. """
    cfg.settle()
    bound_sockets(cfg, flags)
    attached(cfg, XDP_TX)
    for size in (60, 1514):
        check_sent_back(cfg, FRAMES, size)


@ksft_variants(ZEROCOPIES)
def dropped(cfg, flags):
    """ Memory of frames that a program drops is used again. """
    cfg.settle()
    sockets = bound_sockets(cfg, flags)
    attached(cfg, XDP_DROP)
    before = xsk_counts(cfg)
    answer = cfg.generate(4 * FRAMES, drain_ms=200, stall_ms=500)
    ksft_eq((answer["sent"], answer["forwarded"]), (4 * FRAMES, 0))
    wait_until(lambda: xsk_since(cfg, before)["rx_xdp_dropped"] == came_in(answer), 60,
               "all frames are dropped")
    to_sockets(cfg, sockets)
    with reflecting(sockets):
        check_reflected(cfg)


def _read_all(cfg, sockets, before, answer):
    """ Read all frames of a generator's that sockets get, until the card has none of them. """
    read = 0

    def are_read():
        nonlocal read
        read += sum(len(sock.receive(0.01)) for sock in sockets)
        return read + xsk_since(cfg, before)["rx_xdp_aborted"] == came_in(answer)

    wait_until(are_read, 60, "all frames are read, or lost")


@ksft_variants(MODES)
def not_read(cfg, flags):
    """ A socket that nobody reads loses frames, but no memory. """
    cfg.settle()
    sockets = bound_sockets(cfg, flags)
    to_sockets(cfg, sockets)
    for _ in range(3):
        before = xsk_counts(cfg)
        # More than the rings have room for.
        answer = cfg.generate(3 * FRAMES, drain_ms=100, stall_ms=200)
        _read_all(cfg, sockets, before, answer)
    with reflecting(sockets):
        check_reflected(cfg)


@ksft_variants(ZEROCOPIES)
def no_memory(cfg, flags):
    """ A queue goes on when its user gives it memory again. """
    cfg.settle()
    sock = bound_sockets(cfg, flags)[0]
    to_sockets(cfg, [sock])
    frame, kept = test_frame(cfg, 60), []

    def is_empty():
        for _ in range(16):
            cfg.model.inject(0, frame)
        kept.extend(at for at, _, _ in sock.rx.take())
        return len(kept) == sock.given

    wait_until(is_empty, 60, "the card has no memory")
    if flags & NEED_WAKEUP:
        ksft_true(sock.fill.needs_wakeup(), "the kernel waits for a system call")
    sock.fill.put((at, ) for at in kept)
    sock.wait(0.05)
    for _ in range(10):
        cfg.model.inject(0, frame)
        ksft_in(frame, sock.receive())


@ksft_variants(ZEROCOPIES)
def few_chunks(cfg, flags):
    """ A ring that has memory is not short of it, even if it has room for more. """
    cfg.settle()
    sock, port = bound_sockets(cfg, flags, given=64)[0], cfg.ports[0]
    to_sockets(cfg, [sock])
    frame = test_frame(cfg, 60)
    before = driver_stats(port.ifname)["rx_no_buffer"]
    for _ in range(200):
        cfg.model.inject(0, frame)
        ksft_eq(sock.receive(), [frame])
    ksft_eq(driver_stats(port.ifname)["rx_no_buffer"], before)


@ksft_variants(ZEROCOPIES)
def polled_busily(cfg, flags):
    """ System calls of the user poll the queue. """
    cfg.settle()
    sockets = bound_sockets(cfg, flags)
    for sock in sockets:
        sock.poll_busily()
    to_sockets(cfg, sockets)
    with reflecting(sockets):
        check_reflected(cfg)


@ksft_variants(ZEROCOPIES)
@ksft_disruptive
def bound_under_traffic(cfg, flags):
    """ Sockets come and go under traffic, and the link stays up. """
    port = cfg.ports[0]
    cfg.settle()
    attached(cfg, XDP_PASS)
    cfg.start_traffic(flows=64)
    flaps = carrier_changes(port)
    for _ in range(rounds(cfg, 10, 2)):
        for sock in bound(port.ifindex(), cfg.queues, flags):
            ksft_true(sock.is_zerocopy())
            sock.close()
    cfg.check_traffic()
    # A queue that restarts loses frames.
    unbound(cfg)
    ksft_eq(carrier_changes(port), flaps, "changes of the carrier")
    cfg.check_forwarded(FRAMES)


@ksft_variants(ZEROCOPIES)
@ksft_disruptive
def restarted(cfg, flags):
    """ Queues and the port restart while sockets send back what they receive. """
    port = cfg.ports[0]
    cfg.settle()
    sockets = bound_sockets(cfg, flags)
    to_sockets(cfg, sockets)
    with reflecting(sockets):
        cfg.start_traffic(flows=64, stall_ms=100, **back(cfg))
        for _ in range(rounds(cfg, 5, 2)):
            for queue in range(cfg.queues):
                restart_rx_queue(port.ifindex(), queue)
            ip(f"link set {port.ifname} down")
            ip(f"link set {port.ifname} up")
            cfg.card.wait_up()
        cfg.check_traffic()
        cfg.set_up()
        check_reflected(cfg)


@ksft_variants(ZEROCOPIES)
@ksft_disruptive
def link_lost(cfg, flags):
    """ A socket goes away without a link, with frames that were not sent. """
    defer(cfg.model.link, 0)
    for _ in range(rounds(cfg, 4, 2)):
        cfg.settle()
        sockets = bound(cfg.ports[0].ifindex(), cfg.queues, flags)
        to_sockets(cfg, sockets)
        with reflecting(sockets):
            cfg.start_traffic(flows=64, stall_ms=100, **back(cfg))
            cfg.traffic.flows()
            cfg.model.link(0, up=False)
        for sock in sockets:
            sock.tx.put((at, 60, 0) for at in sock.free[:32])
            sock.kick()
            sock.close()
        cfg.model.link(0)
        cfg.card.wait_up()
        cfg.check_traffic()
        unbound(cfg)
        cfg.check_works()


def reflect_forever(ifindex, queues, flags, table):
    """ Bind sockets, put them into a table, and reflect what they receive, until killed. """
    sockets = bound(ifindex, queues, flags)
    for queue, sock in enumerate(sockets):
        put_socket(table, queue, sock)
    while True:
        for sock in sockets:
            sock.reflect()
        sockets[0].wait(0.002)


@ksft_variants(ZEROCOPIES)
@ksft_disruptive
def owner_killed(cfg, flags):
    """ The owner of sockets is killed under traffic, and others take its place. """
    port = cfg.ports[0]
    cfg.settle()
    table = socket_map(cfg.queues)
    defer(os.close, table)
    attach_for_now(cfg, cfg.programs.name(socket_program(table, XDP_DROP)))
    cfg.start_traffic(flows=64, stall_ms=100, **back(cfg))
    for _ in range(rounds(cfg, 5, 2)):
        came = port.stat("tx_packets")
        task = Task(reflect_forever, port.ifindex(), cfg.queues, flags, table)
        wait_until(lambda came=came: port.stat("tx_packets") > came + 100, 60, "frames go back")
        task.kill()
    cfg.check_traffic()
    sockets = bound_sockets(cfg, flags)
    to_sockets(cfg, sockets)
    with reflecting(sockets):
        check_reflected(cfg)


@ksft_disruptive
def too_long(cfg):
    """ Frames are no longer than the chunks of sockets, and the other way round. """
    port = cfg.ports[0]
    defer(ip, f"link set {port.ifname} mtu 1500")
    with contextlib.closing(XdpSocket(port.ifindex(), 0, ZEROCOPY)):
        ip(f"link set {port.ifname} mtu {MAX_MTU}")
        with ksft_raises(CmdExitFailure):
            ip(f"link set {port.ifname} mtu {MAX_MTU + 1}")
    unbound(cfg)
    ip(f"link set {port.ifname} mtu {MAX_MTU + 1}")
    with ksft_raises(OSError):
        XdpSocket(port.ifindex(), 0, ZEROCOPY)
    with contextlib.closing(XdpSocket(port.ifindex(), 0, ZEROCOPY, chunk=4096)):
        ip(f"link set {port.ifname} mtu 3000")
        with ksft_raises(CmdExitFailure):
            ip(f"link set {port.ifname} mtu 9000")
    unbound(cfg)
    ip(f"link set {port.ifname} mtu 9000")


@ksft_variants([KsftNamedVariant("chunk_2048", MAX_MTU, 2048),
                KsftNamedVariant("chunk_4096", 3000, 4096)])
@ksft_disruptive
def longer(cfg, mtu, chunk):
    """ The longest frames of an MTU are received whole. """
    for port in cfg.ports:
        ip(f"link set {port.ifname} mtu {mtu}")
        defer(ip, f"link set {port.ifname} mtu 1500")
    cfg.set_up()
    cfg.settle()
    sockets = bound_sockets(cfg, ZEROCOPY, chunk=chunk)
    to_sockets(cfg, sockets)
    with reflecting(sockets):
        for size in (60, 1514, mtu + HEADER):
            check_reflected(cfg, size)


@ksft_variants([KsftNamedVariant("with_program", True, (3000, 1500, 1511, 1500)),
                KsftNamedVariant("without_program", False, (9000, 1766, 1767, 1511))])
@ksft_disruptive
def mtu_leaves_link(cfg, is_used, mtus):
    """ A new MTU does not take the link down, unless other buffers are better for it. """
    port = cfg.ports[0]
    if is_used:
        attached(cfg, XDP_PASS)
    defer(ip, f"link set {port.ifname} mtu 1500")
    ip(f"link set {port.ifname} mtu {mtus[-1]}")
    cfg.settle()
    flaps = carrier_changes(port)
    for mtu in mtus:
        ip(f"link set {port.ifname} mtu {mtu}")
        ksft_eq((port.attr("mtu"), carrier_changes(port)), (str(mtu), flaps))


@ksft_disruptive
def short_after_longer(cfg):
    """ Short chunks are for frames that come after a reset: longer ones may still wait. """
    port = cfg.ports[0]
    attached(cfg, XDP_PASS)
    cfg.settle()
    flaps = int(carrier_changes(port))
    for mtu in (3000, 1500):
        ip(f"link set {port.ifname} mtu {mtu}")
    sockets = bound_sockets(cfg, ZEROCOPY)
    cfg.settle()
    ksft_eq(int(carrier_changes(port)), flaps + 2)
    to_sockets(cfg, sockets)
    with reflecting(sockets):
        check_reflected(cfg, 1514)


@ksft_disruptive
def no_lro(cfg):
    """ Memory of users and LRO exclude each other. """
    port = cfg.ports[0]
    Path("/proc/sys/net/ipv4/ip_forward").write_text("0", encoding="utf-8")
    defer(cfg.set_up)
    ethtool(f"-K {port.ifname} lro on")
    defer(ethtool, f"-K {port.ifname} lro off")
    ksft_in("large-receive-offload: on", ethtool(f"-k {port.ifname}").stdout)
    with ksft_raises(OSError):
        XdpSocket(port.ifindex(), 0, ZEROCOPY)
    ethtool(f"-K {port.ifname} lro off")
    with contextlib.closing(XdpSocket(port.ifindex(), 0, ZEROCOPY)):
        cmd(f"ethtool -K {port.ifname} lro on", fail=False)
        ksft_in("large-receive-offload: off", ethtool(f"-k {port.ifname}").stdout)


def main():
    """ Ksft boiler plate main """

    run(__file__, [received, reflected, by_library, sent, sent_without_program, too_short,
                   short_ring, checksum_asked, checksum_refused, features, passed, sent_back,
                   dropped, not_read, no_memory, few_chunks, polled_busily,
                   forwards_after("sockets"), bound_under_traffic, forwards_after("binding"),
                   restarted, link_lost, owner_killed, forwards_after("killing"), too_long,
                   longer, mtu_leaves_link, short_after_longer, no_lro, forwards_after("all")])


if __name__ == "__main__":
    main()
