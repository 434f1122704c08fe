#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Packets in tunnels that the device splits, although it knows nothing of tunnels
(GSO partial): the frames are those of the stack but for the identification of
inner headers, and checksums in tunnels are right.
"""

import os
import socket
import struct

from lib.py import KsftNamedVariant, KsftSkipEx, NetNSEnter, cmd, defer, ethtool, ip
from lib.py import ksft_eq, ksft_exit, ksft_ge, ksft_run, ksft_variants
from lib.py.judge import judged
from lib.py.nicmodel import CableEnv
from lib.py.support import SOL_PACKET, driver_stats, netdev_stat, sum16
from segmentation import TCP_ACK, TCP_PSH, build_packet
from tcp_stream import transfer

ETH_HLEN, IPV4_HLEN, IPV6_HLEN, TCP_HLEN = 14, 20, 40, 20
PACKET_VNET_HDR, PACKET_OUTGOING = 15, 4
NEEDS_CSUM, GSO = 1, {"4": 1, "6": 4}
PROTOCOL = {"4": 0x0800, "6": 0x86dd}
DONT_FRAGMENT = 0x4000
INNER = {"4": ("10.77.0.1", "10.77.0.2", 24), "6": ("fd77::1", "fd77::2", 64)}
SIZE, LENGTH = 1200, 30_000
OUTER_HLEN = {"4": IPV4_HLEN, "6": IPV6_HLEN}
# The type of the interface, its options, the outer protocol, the length of the headers behind
# the outer network header, and whether Ethernet is within.
TUNNELS = {
    "vxlan": ("vxlan id 7 dstport 4789 noudpcsum", "4", 16, True),
    "vxlan_csum": ("vxlan id 7 dstport 4789 udpcsum", "4", 16, True),
    "vxlan_v6": ("vxlan id 7 dstport 4789 noudp6zerocsumtx", "6", 16, True),
    "gretap": ("gretap", "4", 4, True),
    "gretap_csum_key": ("gretap csum key 9", "4", 12, True),
    "gre": ("gre", "4", 4, False),
    "ipip": ("ipip", "4", 0, False),
    "sit": ("sit", "4", 0, False),
}
# The inner protocol of those that carry only one.
ONLY = {"ipip": "4", "sit": "6"}
CASES = [KsftNamedVariant(f"{name}_{inner}", name, inner)
         for name in TUNNELS for inner in ("4", "6") if ONLY.get(name, inner) == inner]


def _add(cfg, name):
    """ Add both ends of a tunnel. """
    how, outer, _, _ = TUNNELS[name]
    cfg.require_ipver(outer)
    ends = ((None, cfg.ifname, cfg.addr_v, cfg.remote_addr_v),
            (cfg.remote, cfg.remote_ifname, cfg.remote_addr_v, cfg.addr_v))
    kind, _, options = how.partition(" ")
    for host, dev, local, remote in ends:
        made = cmd(f"ip link add tunnel0 type {kind} local {local[outer]} "
                   f"remote {remote[outer]} dev {dev} {options}", host=host, fail=False)
        if "Unknown device type" in made.stderr or "not supported" in made.stderr:
            raise KsftSkipEx(f"the kernel has no tunnels of type {kind}")
        ksft_eq(made.ret, 0, made.stderr)
        defer(ip, "link del tunnel0", host=host)
        ip("link set tunnel0 up mtu 1400", host=host)
    if outer == "6":
        # No packet waits for an address.
        cmd(f"ping -q -c 2 -i 0.05 -W 2 {cfg.remote_addr_v['6']}")


def _partial(cfg, state, mangle_id=None):
    """ Let the stack split packets in tunnels, or the device. """
    ethtool(f"-K {cfg.ifname} tx-gso-partial {state} "
            f"tx-tcp-mangleid-segmentation {mangle_id or state}")


def _with_device(cfg):
    features = ethtool(f"-k {cfg.ifname}", json=True)[0]
    if features["tx-gso-partial"]["fixed"]:
        raise KsftSkipEx("the device has no GSO partial")
    was = "on" if features["tx-tcp-mangleid-segmentation"]["active"] else "off"
    defer(ethtool, f"-K {cfg.ifname} tx-gso-partial on tx-tcp-mangleid-segmentation {was}")


def _frames(cfg, packet, transport, inner, offset, count):
    """ Send a packet into the tunnel, and return the frames that arrive. """
    with NetNSEnter(os.environ["REMOTE_ARGS"]):
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        receiver.bind((cfg.remote_ifname, 0))
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    ports = packet[transport:transport + 4]
    vnet = struct.pack("=BBHHHH", NEEDS_CSUM, GSO[inner], transport + TCP_HLEN, SIZE, transport,
                       16)
    frames = []
    with receiver, socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sender.bind(("tunnel0", PROTOCOL[inner]))
        sender.send(vnet + packet)
        try:
            while True:
                receiver.settimeout(5 if len(frames) < count else 0.3)
                frame, address = receiver.recvfrom(1 << 17)
                at = offset + transport
                if address[2] != PACKET_OUTGOING and frame[at:at + 4] == ports:
                    frames.append(frame)
        except TimeoutError:
            return frames


def _without_id(frame, at, first):
    """ Return a frame without the identification of IPv4 at this place, which counts from first.
    """
    header = frame[at:at + IPV4_HLEN]
    ksft_eq(sum16(header), 0xffff, "sum of a header of IPv4")
    number = struct.unpack("!H", header[4:6])[0] - first & 0xffff
    blank = header[:4] + struct.pack("!H", number) + header[6:10] + bytes(2) + header[12:]
    return frame[:at] + blank + frame[at + IPV4_HLEN:]


def _comparable(frames, outer, inner, inner_at):
    """ Return frames without what may differ: the start of the outer identifications, and the
    inner ones. """
    found = []
    for frame in frames:
        if outer == "4":
            first = struct.unpack("!H", frames[0][ETH_HLEN + 4:ETH_HLEN + 6])[0]
            frame = _without_id(frame, ETH_HLEN, first)
        if inner == "4":
            own = struct.unpack("!H", frame[inner_at + 4:inner_at + 6])[0]
            frame = _without_id(frame, inner_at, own)
        found.append(frame)
    return found


def _split(cfg):
    return driver_stats(cfg.ifname).get("tx_gso_packets")


def _packet(name, inner):
    """ Return a packet for a tunnel, and the offset of its transport header. """
    packet, transport = build_packet(bytes.fromhex("020000000001020000000002"), f"tcp{inner}",
                                     LENGTH, TCP_ACK | TCP_PSH, 0, DONT_FRAGMENT)
    if not TUNNELS[name][3]:
        return packet[ETH_HLEN:], transport - ETH_HLEN
    return packet, transport


@ksft_variants(CASES)
def frames(cfg, name, inner):
    """ The frames are those of the stack. """
    _, outer, headers, ethernet = TUNNELS[name]
    _add(cfg, name)
    _with_device(cfg)
    packet, transport = _packet(name, inner)
    offset = ETH_HLEN + OUTER_HLEN[outer] + headers
    inner_at = offset + (ETH_HLEN if ethernet else 0)
    count = LENGTH // SIZE

    _partial(cfg, "off")
    before = _split(cfg)
    expected = _frames(cfg, packet, transport, inner, offset, count)
    ksft_eq(len(expected), count, "frames when the stack splits")
    ksft_eq(_split(cfg), before, "packets split by the device, with the feature off")

    _partial(cfg, "on")
    sent = netdev_stat(cfg.ifname, "tx_packets")
    found = _frames(cfg, packet, transport, inner, offset, count)
    ksft_eq(len(found), count, "frames when the device splits")
    pairs = zip(*(_comparable(some, outer, inner, inner_at) for some in (expected, found)),
                strict=False)
    different = [number for number, pair in enumerate(pairs) if pair[0] != pair[1]]
    ksft_eq(different, [], "frames that differ")
    if before is not None:
        ksft_eq(_split(cfg) - before, 1, "packets split by the device")
        ksft_ge(netdev_stat(cfg.ifname, "tx_packets") - sent, count, "packets counted")


def identifications_count(cfg):
    """ Unless users allow it, inner packets do not share an identification of IPv4. """
    _add(cfg, "vxlan")
    _with_device(cfg)
    _partial(cfg, "on", "off")
    packet, transport = _packet("vxlan", "4")
    inner_at = ETH_HLEN + IPV4_HLEN + TUNNELS["vxlan"][2] + ETH_HLEN
    before = _split(cfg)
    found = _frames(cfg, packet, transport, "4", inner_at - ETH_HLEN, LENGTH // SIZE)
    numbers = [struct.unpack("!H", frame[inner_at + 4:inner_at + 6])[0] for frame in found]
    ksft_eq(len(set(numbers)), LENGTH // SIZE, f"identifications: {numbers}")
    ksft_eq(_split(cfg), before, "packets split by the device")


@ksft_variants([KsftNamedVariant(f"{inner}_{state}", inner, state)
                for inner in ("4", "6") for state in ("on", "off")])
def stream(cfg, inner, state):
    """ A TCP stream in a tunnel arrives as it was sent, whether the device splits it or not. """
    cfg.require_ipver(inner)
    _add(cfg, "vxlan")
    for host, address in ((None, INNER[inner][0]), (cfg.remote, INNER[inner][1])):
        cmd("sysctl -q net.ipv6.conf.tunnel0.disable_ipv6=0", host=host)
        ip(f"addr add {address}/{INNER[inner][2]} dev tunnel0 nodad", host=host)
    _with_device(cfg)
    _partial(cfg, state)
    before = _split(cfg)
    transfer(cfg, 5_000_000, "sendfile", inner, INNER[inner][1])
    if before is not None:
        ksft_eq(_split(cfg) - before >= 50, state == "on", "packets split by the device")


def main():
    """ Ksft boiler plate main """

    with CableEnv(__file__) as cfg:
        cfg.know_each_other()
        # The frames are to be seen one by one.
        ethtool(f"-K {cfg.remote_ifname} gro off", host=cfg.remote)
        ksft_run(judged([frames, identifications_count, stream]), args=(cfg, ))
        ethtool(f"-K {cfg.remote_ifname} gro on", host=cfg.remote)
    ksft_exit()


if __name__ == "__main__":
    main()
