#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Packets that a device cannot send as they are. Checksums that it cannot insert,
because the header is too long or the position unusual, are inserted by the
stack, and frames that are too short are padded: they are sent, not dropped.
A packet may also be sent again before it is freed, as pktgen does.
"""

import contextlib
import errno
import re
import socket
import struct
import sys
import zlib
from pathlib import Path

from lib.py import KsftNamedVariant, KsftSkipEx, NetNSEnter, cmd, defer, ksft_eq
from lib.py import ksft_exit, ksft_ge, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import SOL_PACKET, make_room, netdev_stat, sum16, wait_until

# asm-generic/socket.h; the module socket does not have it.
PACKET_AUXDATA = 8
PACKET_VNET_HDR = 15
SO_NOFCS = 43
HAVE_SENDER_FCS = ("ixgbe", "ixgbe_rust")
TP_STATUS_CSUMNOTREADY = 1 << 3
NEEDS_CSUM = 1
ETH_P_IP = 0x0800
# An experimental one (IEEE 802).
ETH_P_EXPERIMENT = 0x88b5
ETH_HLEN = 14
IP_HLEN = 20
L4 = ETH_HLEN + IP_HLEN
MARK = b"tx_features"
LEN = 1000
PKTGEN = Path("/proc/net/pktgen")
PKTGEN_MAGIC = struct.pack("!I", 0xbe9be955)
# Behind the header of UDP.
PKTGEN_HEADER = L4 + 8
# Where TCP has it.
ORDINARY = (L4, 16)


def _frame(cfg, start, offset):
    """ Build a frame with zero where the sum from @start on belongs. """
    mac = bytes.fromhex(cfg.remote_dev["address"].replace(":", ""))
    own = bytes.fromhex(cfg.dev["address"].replace(":", ""))
    header = struct.pack("!BBHHHBBHII", 0x45, 0, IP_HLEN + LEN, 0, 0, 64, socket.IPPROTO_TCP,
                         0, 0x0a090001, 0x0a090002)
    header = header[:10] + struct.pack("!H", 0xffff - sum16(header)) + header[12:]
    body = MARK.ljust(LEN, b"\x5a")
    frame = bytearray(mac + own + struct.pack("!H", ETH_P_IP) + header + body)
    frame[start + offset:start + offset + 2] = b"\0\0"
    return bytes(frame)


def _receive(sock, marked):
    """
    Return the frame with the mark, or None. Skip the case if the frame came
    without a checksum, as between ends of one machine without a wire.
    """
    sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    sock.settimeout(3)
    try:
        while True:
            data, extra, _, _ = sock.recvmsg(1 << 16, 256)
            if data[L4:L4 + len(marked)] != marked:
                continue
            for level, kind, value in extra:
                status = int.from_bytes(value[:4], sys.byteorder)
                ours = (level, kind) == (SOL_PACKET, PACKET_AUXDATA)
                if ours and status & TP_STATUS_CSUMNOTREADY:
                    raise KsftSkipEx("nothing inserts checksums between these ends")
            return data
    except TimeoutError:
        return None


@ksft_variants([
    KsftNamedVariant("ordinary", *ORDINARY),
    KsftNamedVariant("header_of_512_bytes", ETH_HLEN + 512, 16),
    KsftNamedVariant("header_of_800_bytes", ETH_HLEN + 800, 6),
    KsftNamedVariant("other_protocol", L4, 12),
])
def checksum(cfg, start, offset):
    """ A frame arrives with the checksum that was asked for. """
    if (start, offset) == ORDINARY and cfg.card and not cfg.card.sums_as_told:
        raise KsftSkipEx("needs a card that sums up what it is told to")
    frame = _frame(cfg, start, offset)
    with NetNSEnter(cfg.remote_ns):
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        receiver.bind((cfg.remote_ifname, 0))
    dropped = netdev_stat(cfg.ifname, "tx_dropped")
    with receiver, socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sender.bind((cfg.ifname, ETH_P_IP))
        header = struct.pack("=BBHHHH", NEEDS_CSUM, 0, len(frame), 0, start, offset)
        sender.send(header + frame)
        got = _receive(receiver, MARK)
    ksft_eq(netdev_stat(cfg.ifname, "tx_dropped") - dropped, 0, "frames dropped")
    ksft_eq(got is not None, True, "the frame arrives")
    if got:
        ksft_eq(sum16(got[start:len(frame)]), 0xffff, "its checksum")


@ksft_variants([14, 15, 16, 17, 18, 33, 59, 60])
def short(cfg, length):
    """ A frame of this many bytes arrives, followed by nothing but zeros. """
    macs = bytes.fromhex((cfg.remote_dev["address"] + cfg.dev["address"]).replace(":", ""))
    frame = (macs + struct.pack("!H", ETH_P_EXPERIMENT)).ljust(length, b"\xa5")
    with NetNSEnter(cfg.remote_ns):
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                 socket.htons(ETH_P_EXPERIMENT))
        receiver.bind((cfg.remote_ifname, ETH_P_EXPERIMENT))
    receiver.settimeout(3)
    with receiver, socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind((cfg.ifname, ETH_P_EXPERIMENT))
        # Old data, which padding could hold.
        sender.send(frame[:ETH_HLEN].ljust(300, b"\xff"))
        ksft_eq(len(receiver.recv(1 << 16)), 300, "the long frame arrives")
        sender.send(frame)
        got = receiver.recv(1 << 16)
    ksft_eq(got[:length], frame, "what was sent")
    ksft_eq(got[length:].strip(b"\0"), b"", "what follows")


@ksft_variants([60, 61, 1000, 1514])
def sender_fcs(cfg, length):
    """ A frame arrives whose sender has appended the frame check sequence. """
    macs = bytes.fromhex((cfg.remote_dev["address"] + cfg.dev["address"]).replace(":", ""))
    frame = (macs + struct.pack("!H", ETH_P_EXPERIMENT)).ljust(length, b"\xa5")
    with NetNSEnter(cfg.remote_ns):
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                 socket.htons(ETH_P_EXPERIMENT))
        receiver.bind((cfg.remote_ifname, ETH_P_EXPERIMENT))
    receiver.settimeout(3)
    with receiver, socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind((cfg.ifname, ETH_P_EXPERIMENT))
        sender.setsockopt(socket.SOL_SOCKET, SO_NOFCS, 1)
        try:
            sender.send(frame + struct.pack("<I", zlib.crc32(frame)))
        except OSError as error:
            if error.errno != errno.EPROTONOSUPPORT or cfg.driver in HAVE_SENDER_FCS:
                raise
            raise KsftSkipEx("the device appends it to all frames") from error
        ksft_eq(receiver.recv(1 << 16), frame, "what was sent")


def _pktgen_sent(cfg):
    return int(re.search(r"pkts-sofar: (\d+)", (PKTGEN / cfg.ifname).read_text())[1])


def _pktgen_runs(cfg):
    running = re.search(r"Running:(.*)", (PKTGEN / "kpktgend_0").read_text())[1]
    return cfg.ifname in running.split()


def _pktgen(cfg, count, lines):
    """
    Have pktgen send frames to the other end, to no address of it. Return the
    number that it has sent.
    """
    if cmd("modprobe pktgen", fail=False).ret and not PKTGEN.exists():
        raise KsftSkipEx("needs pktgen")
    thread = PKTGEN / "kpktgend_0"
    thread.write_text(f"add_device {cfg.ifname}\n")
    defer(thread.write_text, "rem_device_all\n")
    for line in (f"count {count}", "delay 0", "pkt_size 60", "dst 10.99.0.1",
                 f"dst_mac {cfg.remote_dev['address']}", *lines):
        try:
            (PKTGEN / cfg.ifname).write_text(f"{line}\n")
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            raise KsftSkipEx("the driver may keep a packet on a list") from error
    (PKTGEN / "pgctrl").write_text("start\n")
    # It does not wait for a thread that has not begun after 125 ms.
    wait_until(lambda: _pktgen_sent(cfg) >= count and not _pktgen_runs(cfg), 60,
               "pktgen sends its frames")
    return _pktgen_sent(cfg)


@ksft_variants([
    KsftNamedVariant("clones", 100, 1),
    KsftNamedVariant("burst", 0, 8),
    KsftNamedVariant("bursts_of_clones", 200, 32),
])
def shared(cfg, clones, burst):
    """ A packet that is sent again before it is freed arrives each time. """
    count = 640
    with NetNSEnter(cfg.remote_ns):
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        receiver.bind((cfg.remote_ifname, ETH_P_IP))
    make_room(receiver, 4 << 20)
    receiver.settimeout(10)
    dropped = netdev_stat(cfg.ifname, "tx_dropped")
    with receiver:
        # If the queue was stopped in a burst, the last one exceeds the count.
        sent = _pktgen(cfg, count, [f"clone_skb {clones}", f"burst {burst}"])
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
            sender.bind((cfg.ifname, ETH_P_IP))
            last = _frame(cfg, *ORDINARY)
            sender.send(last)
        got, ended = [], False
        with contextlib.suppress(TimeoutError):
            # Several queues may change the order.
            while not ended or len(got) < sent:
                frame = receiver.recv(1 << 16)
                if frame == last:
                    ended = True
                else:
                    got.append(frame)
    ksft_eq(netdev_stat(cfg.ifname, "tx_dropped") - dropped, 0, "frames dropped")
    ksft_ge(sent, count)
    ksft_eq(len(got), sent, "frames that arrive")
    ksft_eq({frame[PKTGEN_HEADER:PKTGEN_HEADER + 4] for frame in got}, {PKTGEN_MAGIC})


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        cfg.know_each_other()
        ksft_run(cfg.judged([checksum, short, sender_fcs, shared]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
