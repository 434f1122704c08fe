#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Packets in tunnels that the device splits, although it knows nothing of tunnels
(GSO partial): the frames are those of the stack but for the identification of
inner headers, and checksums in tunnels are right.
"""

import struct
from functools import partial

from lib.py import KsftNamedVariant, KsftSkipEx, cmd, defer, ethtool, ip
from lib.py import ksft_eq, ksft_exit, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import sum16
from segmentation import ETH_HLEN, TCP_ACK, TCP_PSH
from segmentation import build_packet, check_split, offloaded, send_and_receive
from tcp_stream import transfer

IPV4_HLEN, IPV6_HLEN = 20, 40
DONT_FRAGMENT = 0x4000
INNER = {"4": ("10.77.0.1", "10.77.0.2", 24), "6": ("fd77::1", "fd77::2", 64)}
SIZE, LENGTH = 1200, 30_000
COUNT = LENGTH // SIZE
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
    # With an extension header behind the outer one, the limit of encapsulations.
    "ip6gre": ("ip6gre", "6", 12, False),
    "ip6tnl": ("ip6tnl mode any", "6", 8, False),
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


def _gso_partial(cfg, state, mangle_id=None):
    """ Let the stack split packets in tunnels, or the device. """
    ethtool(f"-K {cfg.ifname} tx-gso-partial {state} "
            f"tx-tcp-mangleid-segmentation {mangle_id or state}")


def _with_device(cfg):
    features = ethtool(f"-k {cfg.ifname}", json=True)[0]
    if features["tx-gso-partial"]["fixed"]:
        raise KsftSkipEx("the device has no GSO partial")
    was = "on" if features["tx-tcp-mangleid-segmentation"]["active"] else "off"
    defer(ethtool, f"-K {cfg.ifname} tx-gso-partial on tx-tcp-mangleid-segmentation {was}")


def _without_id(frame, at, first):
    """ Return a frame without the identification of IPv4 at this place, which counts from first.
    """
    header = frame[at:at + IPV4_HLEN]
    ksft_eq(sum16(header), 0xffff, "sum of a header of IPv4")
    number = struct.unpack("!H", header[4:6])[0] - first & 0xffff
    blank = header[:4] + struct.pack("!H", number) + header[6:10] + bytes(2) + header[12:]
    return frame[:at] + blank + frame[at + IPV4_HLEN:]


def _comparable(outer, inner, inner_at, received):
    """ Return frames without what may differ: the start of the outer identifications, and the
    inner ones. """
    found = []
    for frame in received:
        if outer == "4":
            first = struct.unpack("!H", received[0][ETH_HLEN + 4:ETH_HLEN + 6])[0]
            frame = _without_id(frame, ETH_HLEN, first)
        if inner == "4":
            own = struct.unpack("!H", frame[inner_at + 4:inner_at + 6])[0]
            frame = _without_id(frame, inner_at, own)
        found.append(frame)
    return found


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
    check_split(cfg, COUNT, partial(_gso_partial, cfg),
                partial(send_and_receive, cfg, f"tcp{inner}", packet, transport, SIZE, COUNT,
                        "tunnel0", offset),
                partial(_comparable, outer, inner, inner_at))


def identifications_count(cfg):
    """ Unless users allow it, inner packets do not share an identification of IPv4. """
    _add(cfg, "vxlan")
    _with_device(cfg)
    _gso_partial(cfg, "on", "off")
    packet, transport = _packet("vxlan", "4")
    inner_at = ETH_HLEN + IPV4_HLEN + TUNNELS["vxlan"][2] + ETH_HLEN
    before = offloaded(cfg)
    found = send_and_receive(cfg, "tcp4", packet, transport, SIZE, COUNT, "tunnel0",
                             inner_at - ETH_HLEN)
    numbers = [struct.unpack("!H", frame[inner_at + 4:inner_at + 6])[0] for frame in found]
    ksft_eq(len(set(numbers)), COUNT, f"identifications: {numbers}")
    ksft_eq(offloaded(cfg), before, "packets split by the device")


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
    _gso_partial(cfg, state)
    before = offloaded(cfg)
    transfer(cfg, 5_000_000, "sendfile", inner, INNER[inner][1])
    if before is not None:
        ksft_eq(offloaded(cfg) - before >= 50, state == "on", "packets split by the device")


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__) as cfg:
        cfg.know_each_other()
        # The frames are to be seen one by one.
        ethtool(f"-K {cfg.remote_ifname} gro off", host=cfg.remote)
        ksft_run(cfg.judged([frames, identifications_count, stream]), args=(cfg, ))
        ethtool(f"-K {cfg.remote_ifname} gro on", host=cfg.remote)
    ksft_exit()


if __name__ == "__main__":
    main()
