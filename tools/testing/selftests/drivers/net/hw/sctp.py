#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
SCTP, whose checksum is a CRC-32C: frames leave with the right one, computed by
the device or by the stack, and a wrong one is noticed.
"""

import os
import socket
import struct
import sys
import threading
from pathlib import Path

from lib.py import KsftNamedVariant, KsftSkipEx, NetNSEnter, cmd, defer, ethtool
from lib.py import ksft_eq, ksft_exit, ksft_ge, ksft_run, ksft_variants, rand_port
from lib.py.peer import PeerEnv
from lib.py.support import SOL_PACKET, make_room, wait_until

PACKET_AUXDATA = 8
PACKET_OUTGOING = 4
TP_STATUS_CSUMNOTREADY = 1 << 3
FEATURE = "tx-checksum-sctp"
ETH_HLEN = 14
NETWORK = {"4": (0x0800, 20), "6": (0x86dd, 40)}
FAMILY = {"4": socket.AF_INET, "6": socket.AF_INET6}
# One of its own, chunks with padding, more than a frame.
MESSAGES = (1, 2, 3, 61, 500, 1001, 1400, 4000, 20_001)
POLYNOMIAL = 0x82f63b78
# Packets with a wrong checksum, and those of no association, which had a right one.
JUDGED = ("SctpChecksumErrors", "SctpOutOfBlues")
# A chunk of data with no association, which is answered by an abort.
CHUNK = struct.pack("!BBHIHHI", 0, 3, 20, 1, 0, 0, 0) + b"skbk"


def _table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
        yield byte


TABLE = tuple(_table())


def crc32c(packet):
    """ Return the checksum of a packet of SCTP, whatever it has in its place. """
    crc = 0xffffffff
    for byte in packet[:8] + bytes(4) + packet[12:]:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def _has_right_crc(packet):
    return int.from_bytes(packet[8:12], "little") == crc32c(packet)


def _socket(ipver, kind=socket.SOCK_STREAM):
    try:
        return socket.socket(FAMILY[ipver], kind, socket.IPPROTO_SCTP)
    except OSError as error:
        raise KsftSkipEx("the kernel has no SCTP") from error


def _counted(name):
    """ Return a counter of SCTP. """
    for line in Path("/proc/net/sctp/snmp").read_text(encoding="utf-8").splitlines():
        found, value = line.split()
        if found == name:
            return int(value)
    raise KsftSkipEx("the kernel does not count SCTP's packets")


def _capture(ifname):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    make_room(sock, 8 << 20)
    sock.bind((ifname, 0))
    return sock


def _captured(sock, ipver, outgoing):
    """
    Return the packets of SCTP in one direction until now, and whether the
    checksum of each is still to be computed.
    """
    ethertype, length = NETWORK[ipver]
    found = []
    sock.setblocking(False)
    try:
        while True:
            data, extra, _, address = sock.recvmsg(1 << 17, 256)
            if (address[2] == PACKET_OUTGOING) != outgoing or address[1] != ethertype:
                continue
            is_sctp = data[ETH_HLEN + (9 if ipver == "4" else 6)] == socket.IPPROTO_SCTP
            flags = [int.from_bytes(value[:4], sys.byteorder)
                     for level, kind, value in extra
                     if (level, kind) == (SOL_PACKET, PACKET_AUXDATA)]
            if is_sctp:
                # Short frames are padded.
                if ipver == "4":
                    end = ETH_HLEN + int.from_bytes(data[16:18], "big")
                else:
                    end = ETH_HLEN + length + int.from_bytes(data[18:20], "big")
                ready = not flags[0] & TP_STATUS_CSUMNOTREADY
                found.append((data[ETH_HLEN + length:end], ready))
    except BlockingIOError:
        return found


def _receive(listener, got):
    """ Collect what a peer sends until it closes. """
    peer, _ = listener.accept()
    with peer:
        while piece := peer.recv(1 << 16):
            got.extend(piece)


def _exchange(cfg, ipver):
    """ Send messages to the remote end, and check that they arrive. """
    port = rand_port()
    got = bytearray()
    with NetNSEnter(cfg.remote_ns):
        listener = _socket(ipver)
        listener.bind((cfg.remote_addr_v[ipver], port))
        listener.listen(1)
    sent = bytearray()
    with listener, _socket(ipver) as sender:
        receiver = threading.Thread(target=_receive, args=(listener, got), daemon=True)
        receiver.start()
        sender.settimeout(20)
        sender.bind((cfg.addr_v[ipver], 0))
        sender.connect((cfg.remote_addr_v[ipver], port))
        for size in MESSAGES:
            message = os.urandom(size)
            sent += message
            sender.send(message)
        sender.close()
        receiver.join(20)
    # Sockets that capture get packets before SCTP does.
    ksft_eq(bytes(got) == bytes(sent), True, "what arrives is what was sent")


@ksft_variants([
    KsftNamedVariant("by_the_device", "4", "on"),
    KsftNamedVariant("by_the_device_v6", "6", "on"),
    KsftNamedVariant("by_the_stack", "4", "off"),
])
def checksum(cfg, ipver, state):
    """ Each frame that arrives has the right checksum. """
    cfg.require_ipver(ipver)
    if not ethtool(f"-k {cfg.ifname}", json=True)[0][FEATURE]["active"]:
        raise KsftSkipEx("the device does not compute this checksum")
    ethtool(f"-K {cfg.ifname} {FEATURE} {state}")
    defer(ethtool, f"-K {cfg.ifname} {FEATURE} on")
    with NetNSEnter(cfg.remote_ns):
        receiver = _capture(cfg.remote_ifname)
    with receiver, _capture(cfg.ifname) as sender:
        _exchange(cfg, ipver)
        left = _captured(sender, ipver, outgoing=True)
        arrived = _captured(receiver, ipver, outgoing=False)
    ksft_ge(len(left), len(MESSAGES), "packets that leave")
    ksft_ge(len(arrived), len(MESSAGES), "packets that arrive")
    if state == "on":
        ksft_eq([ready for _, ready in left if ready], [], "packets that the stack has summed")
    wrong = [len(packet) for packet, _ in arrived if not _has_right_crc(packet)]
    ksft_eq(wrong, [], "lengths of packets with a wrong checksum")


@ksft_variants([KsftNamedVariant("right", 0, 0), KsftNamedVariant("wrong", 1, 1)])
def received(cfg, damage, errors):
    """ A packet with a wrong checksum is noticed, one with a right one accepted. """
    _socket("4").close()
    packet = struct.pack("!HHII", 7777, 7778, 1, 0) + CHUNK
    crc = crc32c(packet) ^ damage
    packet = packet[:8] + crc.to_bytes(4, "little") + packet[12:]
    before = [_counted(name) for name in JUDGED]
    with NetNSEnter(cfg.remote_ns):
        sender = _socket("4", socket.SOCK_RAW)
    with sender, _capture(cfg.ifname) as own:
        sender.bind((cfg.remote_addr_v["4"], 0))
        sender.sendto(packet, (cfg.addr_v["4"], 0))
        wait_until(lambda: [_counted(name) for name in JUDGED] != before, 10,
                   "the packet is counted")
        seen = _captured(own, "4", outgoing=False)
    ksft_eq(len(seen), 1, "packets that arrive")
    ksft_eq(_counted(JUDGED[0]) - before[0], errors, "packets with a wrong checksum")


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        cmd("modprobe -q sctp", fail=False)
        ksft_run(cfg.judged([checksum, received]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
