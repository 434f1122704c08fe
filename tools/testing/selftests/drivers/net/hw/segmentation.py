#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Packets that the device splits (TSO, USO): each frame on the wire is the same,
byte for byte, as when the stack splits the packet.
"""

import contextlib
import socket
import struct
from functools import partial

from lib.py import KsftNamedVariant, KsftSkipEx, NetNSEnter, defer, ethtool, ip
from lib.py import ksft_eq, ksft_exit, ksft_ge, ksft_in, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import SOL_PACKET, driver_stats, make_room, netdev_stat, sum16
from lib.py.support import wait_until
from tcp_stream import transfer

PACKET_VNET_HDR = 15
PACKET_OUTGOING = 4
NEEDS_CSUM = 1
GSO = {"tcp4": 1, "tcp6": 4, "udp4": 5, "udp6": 5}
ETH_HLEN = 14
# An experimental EtherType (IEEE 802), of a frame behind all others.
ETH_P_LAST = 0x88b5
FEATURES = ("tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-udp-segmentation")
# No host has these addresses, so there are no answers.
V4 = (bytes((10, 9, 0, 70)), bytes((10, 9, 0, 77)))
V6 = (socket.inet_pton(socket.AF_INET6, "2001:db8:9::70"),
      socket.inet_pton(socket.AF_INET6, "2001:db8:9::77"))
TCP_CWR, TCP_ACK, TCP_PSH, TCP_FIN = 0x80, 0x10, 0x08, 0x01


def _macs(cfg):
    return bytes.fromhex((cfg.remote_dev["address"] + cfg.dev["address"]).replace(":", ""))


def _transport(kind, size, flags, options):
    """ Build the transport header and the data, with zero as the checksum. """
    data = bytes(range(251)) * (size // 251 + 1)
    if kind.startswith("udp"):
        return struct.pack("!HHHH", 7777, 7778, 8 + size, 0) + data[:size]
    # The sequence number wraps on the way.
    header = struct.pack("!HHIIBBHHH", 7777, 7778, 0xffff_f000, 1, (5 + options) << 4, flags,
                         1000, 0, 0)
    return header + b"\1" * (4 * options) + data[:size]


def build_packet(macs, kind, size, flags, options, fragment=0):
    """ Return a packet, and the offset of its transport header. """
    body = _transport(kind, size, flags, options)
    protocol = socket.IPPROTO_UDP if kind.startswith("udp") else socket.IPPROTO_TCP
    length = len(body)
    if kind.endswith("4"):
        network = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length & 0xffff, 0xfffe,
                              fragment, 64, protocol, 0, *V4)
        network = network[:10] + struct.pack("!H", 0xffff - sum16(network)) + network[12:]
        pseudo = b"".join(V4)
    else:
        network = struct.pack("!IHBB16s16s", 6 << 28, length & 0xffff, protocol, 64, *V6)
        pseudo = b"".join(V6)
    at = 6 if kind.startswith("udp") else 16
    seed = sum16(pseudo + struct.pack("!II", length, protocol))
    body = body[:at] + struct.pack("!H", seed) + body[at + 2:]
    kind_of_payload = 0x0800 if kind.endswith("4") else 0x86dd
    return macs + struct.pack("!H", kind_of_payload) + network + body, ETH_HLEN + len(network)


def send_to_split(ifname, kind, packet, transport, size):
    """ Send a packet that is to be split. """
    headers = transport + (8 if kind.startswith("udp") else packet[transport + 12] >> 4 << 2)
    at = 6 if kind.startswith("udp") else 16
    vnet = struct.pack("=BBHHHH", NEEDS_CSUM, GSO[kind], headers, size, transport, at)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sender.bind((ifname, 0x0800 if kind.endswith("4") else 0x86dd))
        sender.send(vnet + packet)


def _send_last(cfg):
    """ Send a frame that arrives behind those that were sent before. """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind((cfg.ifname, ETH_P_LAST))
        sender.send(_macs(cfg) + struct.pack("!H", ETH_P_LAST) + bytes(46))


def send_and_receive(cfg, kind, packet, transport, size, count, tunnel=None, offset=0):
    """
    Send a packet that is to be split into segments of this size, and return the
    frames that arrive, of which there should be @count. If it goes into a
    tunnel, frames have @offset bytes of headers in front of it.
    """
    with NetNSEnter(cfg.remote_ns):
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        receiver.bind((cfg.remote_ifname, 0))
    make_room(receiver, 8 << 20)
    receiver.settimeout(10)
    frames, ended = [], False
    at = offset + transport
    with receiver, contextlib.suppress(TimeoutError):
        send_to_split(tunnel or cfg.ifname, kind, packet, transport, size)
        _send_last(cfg)
        # Several queues may change the order.
        while not ended or len(frames) < count:
            frame, address = receiver.recvfrom(1 << 17)
            if address[2] == PACKET_OUTGOING:
                continue
            ended |= address[1] == ETH_P_LAST
            # The ports, behind the IP addresses.
            if frame[at:at + 4] == packet[transport:transport + 4]:
                frames.append(frame)
                if len(frame) - offset == len(packet):
                    raise KsftSkipEx("nothing splits packets between these ends")
    return frames


def _features(cfg, state):
    ethtool(f"-K {cfg.ifname} " + " ".join(f"{name} {state}" for name in FEATURES))


def offloaded(cfg):
    """ Return how many packets the device has split; None if it does not count them. """
    return driver_stats(cfg.ifname).get("tx_gso_packets")


def _set_peer_mtu(cfg, mtu):
    ip(f"link set {cfg.remote_ifname} mtu {mtu}", host=cfg.remote)
    cfg.wait_up()


def _counted(cfg):
    """ Return the packets that were sent, dropped, and split by the device. """
    sent, dropped = (netdev_stat(cfg.ifname, f"tx_{name}") for name in ("packets", "dropped"))
    return sent, dropped, offloaded(cfg)


def check_split(cfg, count, switch, receive, comparable=list):
    """
    Check that receive() returns the same frames when the stack splits a packet,
    after switch("off"), and when the device does, after switch("on").
    comparable() takes out of frames what may differ.
    """
    switch("off")
    before = offloaded(cfg)
    expected = receive()
    ksft_eq(len(expected), count, "frames when the stack splits")
    ksft_eq(offloaded(cfg), before, "packets split by the device, with the features off")

    switch("on")
    sent = netdev_stat(cfg.ifname, "tx_packets")
    found = receive()
    ksft_eq(len(found), count, "frames when the device splits")
    pairs = zip(comparable(expected), comparable(found), strict=False)
    different = [number for number, pair in enumerate(pairs) if pair[0] != pair[1]]
    ksft_eq(different, [], "frames that differ")
    if before is not None:
        wait_until(lambda: offloaded(cfg) > before, 5, "the device has split a packet")
        ksft_eq(offloaded(cfg) - before, 1, "packets split by the device")
        ksft_ge(netdev_stat(cfg.ifname, "tx_packets") - sent, count, "packets counted")


@ksft_variants([
    KsftNamedVariant("tcp4", "tcp4", 1448, 30_000, TCP_ACK | TCP_PSH, 3),
    KsftNamedVariant("tcp4_cwr_fin", "tcp4", 1000, 5001, TCP_CWR | TCP_ACK | TCP_FIN, 0),
    KsftNamedVariant("tcp4_largest", "tcp4", 1460, 65_000, TCP_ACK, 0),
    KsftNamedVariant("tcp4_two_full", "tcp4", 700, 1400, TCP_ACK, 10),
    KsftNamedVariant("tcp4_tiny_last", "tcp4", 1448, 1449, TCP_ACK | TCP_PSH, 3),
    KsftNamedVariant("tcp4_small_segments", "tcp4", 100, 10_000, TCP_ACK, 0),
    KsftNamedVariant("tcp6", "tcp6", 1428, 30_000, TCP_ACK | TCP_PSH, 3),
    KsftNamedVariant("tcp6_odd", "tcp6", 777, 20_001, TCP_ACK | TCP_FIN, 1),
    KsftNamedVariant("udp4", "udp4", 1400, 14_500, 0, 0),
    KsftNamedVariant("udp4_odd", "udp4", 333, 5000, 0, 0),
    KsftNamedVariant("udp6", "udp6", 1400, 14_500, 0, 0),
])
def frames(cfg, kind, size, length, flags, options):
    """ The frames are those of the stack. """
    packet, transport = build_packet(_macs(cfg), kind, length, flags, options)
    count = -(-length // size)
    check_split(cfg, count, partial(_features, cfg),
                partial(send_and_receive, cfg, kind, packet, transport, size, count))


@ksft_variants([
    KsftNamedVariant("segments_too_small", "tcp4", 40, 2000),
    KsftNamedVariant("udp_too_small", "udp4", 10, 300),
])
def split_by_the_stack(cfg, kind, size, length):
    """ A packet that the device cannot split is split by the stack. """
    if cfg.driver == "ixgbe":
        raise KsftSkipEx("the C driver leaves it to the card")
    packet, transport = build_packet(_macs(cfg), kind, length, TCP_ACK, 0)
    dropped = netdev_stat(cfg.ifname, "tx_dropped")
    before = offloaded(cfg)
    count = -(-length // size)
    found = send_and_receive(cfg, kind, packet, transport, size, count)
    ksft_eq(len(found), count, "frames")
    ksft_eq(offloaded(cfg), before, "packets split by the device")
    ksft_eq(netdev_stat(cfg.ifname, "tx_dropped"), dropped, "packets dropped")


@ksft_variants([
    # Of the greatest MTU, and one byte longer: the peer drops such a frame.
    KsftNamedVariant("as_long_as_the_mtu", 9670, 40_000, (5, 0), 1, 5),
    KsftNamedVariant("longer_than_the_mtu", 9671, 19_000, (2, 0), 0, 1),
    # Longer than a frame.
    KsftNamedVariant("too_long", 15_900, 40_000, (1, 2), 0, 1),
    KsftNamedVariant("too_long_each", 20_000, 40_000, (0, 2), 0, 0),
    KsftNamedVariant("longest", 60_000, 65_000, (1, 1), 0, 1),
    # A single segment is a packet like any other.
    KsftNamedVariant("in_one_piece", 20_000, 16_500, (0, 1), 0, 0),
])
def long_segments(cfg, size, length, fates, by_device, arrive):
    """
    Senders choose the length of segments. Those that the device cannot send are
    dropped, and do not count as sent.
    """
    if cfg.driver == "ixgbe":
        raise KsftSkipEx("the C driver leaves it to the card")
    mtu = ip(f"-d link show {cfg.ifname}", json=True)[0]["max_mtu"]
    if mtu != 9710:
        raise KsftSkipEx(f"the greatest MTU is {mtu}")
    _set_peer_mtu(cfg, mtu)
    defer(_set_peer_mtu, cfg, 1500)
    packet, transport = build_packet(_macs(cfg), "tcp4", length, TCP_ACK, 0)
    before = _counted(cfg)
    found = send_and_receive(cfg, "tcp4", packet, transport, size, arrive)
    ksft_eq(len(found), arrive, "frames")

    def since():
        return [now - was for now, was in zip(_counted(cfg), before, strict=True)]

    # One more frame is the last one, and the stack may send something of its own.
    sent, dropped = fates
    wait_until(lambda: since()[0] > sent and since()[2] >= by_device, 60, "packets are counted")
    ksft_in(since()[0] - sent - 1, range(10), "more packets sent")
    ksft_eq(since()[1:], [dropped, by_device], "dropped, split by the device")


@ksft_variants([KsftNamedVariant("v4", "4"), KsftNamedVariant("v6", "6")])
def stream(cfg, ipver):
    """ A TCP stream arrives as it was sent, and most of it is split by the device. """
    before = offloaded(cfg)
    transfer(cfg, 20_000_000, "sendfile", ipver)
    if before is not None:
        ksft_ge(offloaded(cfg) - before, 100, "packets split by the device")


@ksft_variants([KsftNamedVariant("v4", "4"), KsftNamedVariant("v6", "6")])
def stream_in_big_packets(cfg, ipver):
    """ The same with packets of more than 64 KiB (BIG TCP). """
    link = ip(f"-d link show {cfg.ifname}", json=True)[0]
    if link["tso_max_size"] <= 65536:
        raise KsftSkipEx("the device has no packets of more than 64 KiB")
    was = f"gso_max_size {link['gso_max_size']} gso_ipv4_max_size {link['gso_ipv4_max_size']}"
    ip(f"link set {cfg.ifname} gso_max_size 200000 gso_ipv4_max_size 200000")
    defer(ip, f"link set {cfg.ifname} {was}")
    transfer(cfg, 20_000_000, "sendfile", ipver)


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        cfg.know_each_other()
        # The frames are to be seen one by one.
        ethtool(f"-K {cfg.remote_ifname} gro off", host=cfg.remote)
        ksft_run(cfg.judged([frames, split_by_the_stack, long_segments, stream,
                             stream_in_big_packets]), args=(cfg, ))
        ethtool(f"-K {cfg.remote_ifname} gro on", host=cfg.remote)
    ksft_exit()


if __name__ == "__main__":
    main()
