#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
A port as hosts use it, by reports of what went wrong with NICs: packets of guests
with headers that make no sense, more addresses than the NIC has room for, all
VLANs, zero copy, data that nobody reads. The port gets
another name, loses its namespace, and is unbound with devices on top of it.
"""

import contextlib
import errno
import random
import socket
import struct
import time
from pathlib import Path

from lib.py import CmdExitFailure, KsftNamedVariant, KsftSkipEx, NetNS, NetNSEnter, cmd, defer
from lib.py import ethtool, ip, ksft_disruptive, ksft_eq, ksft_exit, ksft_ge, ksft_gt, ksft_in
from lib.py import ksft_lt, ksft_run, ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import SOL_PACKET, driver_stats, ip_batch, is_emulated, make_room
from lib.py.support import netdev_stat, wait_until
from segmentation import GSO, PACKET_VNET_HDR, TCP_ACK, build_packet
from tcp_stream import connect, transfer

SENDS = 300 if is_emulated() else 2000
ADDRESSES = 140
ALL_VLANS = "2-4094"
ETH_P_TEST = 0x88b5
FRAMES = 20
DATAGRAMS, SIZE = 200, 1000
SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000
ORIGIN_ZEROCOPY = 5
UNREAD = 100_000
REFUSALS = (errno.EINVAL, errno.ENOBUFS, errno.EMSGSIZE, errno.ENOMEM)


def _macs(cfg):
    return bytes.fromhex((cfg.remote_dev["address"] + cfg.dev["address"]).replace(":", ""))


def _made_up(rng, macs, mangled):
    """
    Return a packet and its struct virtio_net_hdr: with any sizes, or @mangled, so that they make no
    sense.
    """
    kind = rng.choice(list(GSO))
    packet, transport = build_packet(macs, kind, rng.choice((0, 1, 7, 600, 1400, 3000, 20_000)),
                                     TCP_ACK, rng.randrange(11))
    size = rng.choice((1, 63, 64, 700, 1448, 9000, 16_000, rng.randrange(1 << 16)))
    header = [1, GSO[kind], rng.choice((transport + 20, rng.randrange(200))), size, transport,
              6 if kind.startswith("udp") else 16]
    if mangled:
        for _ in range(rng.randrange(1, 4)):
            field = rng.randrange(len(header))
            limit = (8, 256)[field] if field < 2 else rng.choice((100, 1500, 1 << 16))
            header[field] = rng.randrange(limit)
        packet = bytearray(packet)
        for _ in range(rng.randrange(6)):
            packet[rng.randrange(12, min(len(packet), 90))] = rng.randrange(256)
        if rng.randrange(4) == 0:
            packet = packet[:rng.randrange(14, len(packet))]
    return struct.pack("=BBHHHH", *header) + bytes(packet)


def _sent(cfg):
    return [netdev_stat(cfg.ifname, "tx_packets"), cfg.model.stats(0)["tx_frames"]]


@ksft_variants([KsftNamedVariant("sizes", False), KsftNamedVariant("mangled", True)])
def made_up_headers(cfg, mangled):
    """ Whatever headers a guest makes up: all that counts as sent is on the wire. """
    if cfg.driver == "ixgbe":
        raise KsftSkipEx("the C driver leaves it to the card")
    rng, macs, taken = random.Random(1), _macs(cfg), 0
    before = _sent(cfg)
    # Of headers that make no sense, no driver can make a context that does.
    away = cfg.unjudged() if mangled else contextlib.nullcontext()
    with away, socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sender.bind((cfg.ifname, 0x0800))
        for _ in range(SENDS):
            try:
                sender.send(_made_up(rng, macs, mangled))
                taken += 1
            except OSError as error:
                ksft_in(error.errno, REFUSALS, "a refusal that says what is wrong")
        ksft_gt(taken, SENDS // 20, "packets that the stack takes")
        cfg.reach()
        # Of what came in between, the wire may have one more.
        wait_until(lambda: len({now - was for now, was in zip(_sent(cfg), before, strict=True)})
                   == 1, 30, "all that counts as sent is on the wire")


def _arrive(cfg, mac, number=None):
    """ Return how many frames to an address arrive, with the tag of a VLAN, if any. """
    tag = struct.pack("!HH", 0x8100, number) if number else b""
    frame = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("02000000fe02") + tag + struct.pack(
        "!H", ETH_P_TEST)
    last = bytes.fromhex(cfg.dev["address"].replace(":", "")) + frame[6:12] + struct.pack(
        "!H", ETH_P_TEST)
    found = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as sock:
        sock.bind((cfg.ifname, 3))
        sock.settimeout(60)
        for _ in range(FRAMES):
            cfg.inject(frame + b"frame".ljust(50))
        cfg.inject(last + b"last".ljust(50))
        while b"last" not in (data := sock.recv(200)):
            found += b"frame" in data
    return found


def many_addresses(cfg):
    """ A port with more addresses than fit into its filter gets frames to each, and no VLAN's. """
    cfg.require_driver("ixgbe_rust", why="the C driver refuses what does not fit")
    addresses = [f"02:00:00:00:77:{number:02x}" for number in range(ADDRESSES)]
    added = []

    def remove():
        while added:
            cmd(f"bridge fdb del {added.pop()} dev {cfg.ifname}")

    defer(remove)
    for address in addresses:
        cmd(f"bridge fdb add {address} dev {cfg.ifname}")
        added.append(address)
    for address in (addresses[0], addresses[-1]):
        ksft_eq(_arrive(cfg, address), FRAMES, f"frames to {address}")
    remove()
    for address in (addresses[0], addresses[-1]):
        ksft_eq(_arrive(cfg, address), 0, f"frames to {address} that is not the port's any more")


def _in_bridge(cfg):
    ip("link add ksft-bridge type bridge vlan_filtering 1 vlan_default_pvid 0")
    # The port's addresses go with the link to the bridge, but not by deleting it.
    defer(ip, "link del ksft-bridge")
    ip(f"link set {cfg.ifname} master ksft-bridge")
    ip("link set ksft-bridge up")


@ksft_disruptive
def all_vlans(cfg):
    """ A bridge takes all VLANs on its port, and each frame arrives, until it gives them back. """
    _in_bridge(cfg)
    numbers = (2, 33, 2000, 4094)
    own = cfg.dev["address"]
    ksft_eq([_arrive(cfg, own, number) for number in numbers], [0] * len(numbers))
    cmd(f"bridge vlan add dev {cfg.ifname} vid {ALL_VLANS}")
    ksft_eq([_arrive(cfg, own, number) for number in numbers], [FRAMES] * len(numbers))
    for state in ("down", "up"):
        ip(f"link set {cfg.ifname} {state}")
    cfg.wait_up()
    ksft_eq([_arrive(cfg, own, number) for number in numbers], [FRAMES] * len(numbers))
    cmd(f"bridge vlan del dev {cfg.ifname} vid {ALL_VLANS}")
    ksft_eq([_arrive(cfg, own, number) for number in numbers], [0] * len(numbers))


def _completed(sock):
    """ Return how many sends the kernel has said to be done with. """
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            _, auxiliary, *_ = sock.recvmsg(1, 512, socket.MSG_ERRQUEUE)
            for *_, value in auxiliary:
                _, origin, first, last = struct.unpack("=IB3xII", value[:16])
                count += last - first + 1 if origin == ORIGIN_ZEROCOPY else 0
    return count


@ksft_disruptive
def zero_copy(cfg):
    """ Memory of senders comes back, also if the port goes down, or loses its link, with it. """
    with NetNSEnter(cfg.remote_ns):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        server.bind((cfg.remote_addr_v["4"], 0))
        sock.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
        sock.connect(server.getsockname())
        done = sent = 0

        def all_done():
            nonlocal done
            done += _completed(sock)
            return done >= sent

        def send(count):
            nonlocal sent
            for _ in range(count):
                sock.send(bytes(SIZE), MSG_ZEROCOPY)
                sent += 1

        send(DATAGRAMS)
        wait_until(all_done, 60, "all sends are done")
        defer(cfg.reach)
        defer(ip, f"link set {cfg.ifname} up")
        # Those that the card never reports as sent.
        cfg.model.fault(0, "tx_no_done", 100_000)
        defer(cfg.model.mend, 0)
        send(FRAMES)
        ip(f"link set {cfg.ifname} down")
        wait_until(all_done, 60, "all sends are done, the port is down")
        cfg.model.mend(0)
        ip(f"link set {cfg.ifname} up")
        cfg.reach()
        cfg.model.fault(0, "lost_link")
        defer(cfg.model.link, 0, True)
        send(DATAGRAMS)
        wait_until(all_done, 60, "all sends are done, the link is lost")
        ksft_eq(done, sent, "sends that are done")


def two_tags(cfg):
    """ A frame with two tags arrives with both, of which the outer one is beside it. """
    own = bytes.fromhex(cfg.dev["address"].replace(":", ""))
    rest = struct.pack("!HHH", 0x8100, 7, ETH_P_TEST) + b"two tags".ljust(50)
    frame = own + bytes.fromhex("02000000fe02") + struct.pack("!HH", 0x8100, 100) + rest
    ip(f"link set {cfg.ifname} promisc on")
    defer(ip, f"link set {cfg.ifname} promisc off")
    defer(ethtool, f"-K {cfg.ifname} rxvlan on")
    for state in ("on", "off"):
        ethtool(f"-K {cfg.ifname} rxvlan {state}")
        cfg.wait_up()
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as sock:
            sock.setsockopt(SOL_PACKET, 8, 1)
            sock.bind((cfg.ifname, 3))
            sock.settimeout(60)
            cfg.inject(frame)
            while b"two tags" not in (found := sock.recvmsg(200, 100))[0]:
                pass
        data, auxiliary, *_ = found
        beside = [struct.unpack("=IIIHHHH", value)[5] for *_, value in auxiliary
                  if struct.unpack("=I", value[:4])[0] & 1 << 4]
        # The stack strips the tag that the device has left.
        ksft_eq((beside, data[12:]), ([100], rest), f"the tag and the rest, rxvlan {state}")


def _stats_keep(cfg, before):
    now = driver_stats(cfg.ifname)
    return {name: (before[name], now[name]) for name in before
            if name in now and now[name] < before[name]}


@ksft_variants([
    KsftNamedVariant("channels", "ethtool -L {} combined 2", "ethtool -L {} combined 1"),
    KsftNamedVariant("rings", "ethtool -G {} rx 256 tx 256", "ethtool -G {} rx 512 tx 512"),
    KsftNamedVariant("mtu", "ip link set {} mtu 9000", "ip link set {} mtu 1500"),
    KsftNamedVariant("lro", "ethtool -K {} lro on", "ethtool -K {} lro off"),
    KsftNamedVariant("test", "ethtool -t {} offline", "true"),
    KsftNamedVariant("down", "ip link set {} down", "ip link set {} up"),
])
@ksft_disruptive
def counters_go_on(cfg, change, back):
    """ No counter goes back when the rings are made anew. """
    if cfg.driver == "ixgbe":
        raise KsftSkipEx("its counters of rings go with the rings")
    cmd(f"ping -q -c 20 -i 0.01 {cfg.remote_addr_v['4']}")
    before = driver_stats(cfg.ifname)
    totals = [netdev_stat(cfg.ifname, name) for name in ("rx_packets", "tx_packets")]
    for command in (change, back):
        done = cmd(command.format(cfg.ifname), fail=False)
        if done.ret and "combined 2" in command:
            raise KsftSkipEx("a single queue")
        ksft_eq(done.ret, 0, command)
        ksft_eq(_stats_keep(cfg, before), {}, f"counters that went back by {command}")
        now = [netdev_stat(cfg.ifname, name) for name in ("rx_packets", "tx_packets")]
        ksft_ge(now, totals)
    cfg.reach()


@ksft_disruptive
def renamed(cfg):
    """ A port gets another name while a stream runs. """
    name = cfg.ifname
    for new in ("ksft-name", name):
        ip(f"link set {cfg.ifname} name {new}")
        cfg.dev["ifname"] = cfg.ifname = new
        transfer(cfg, 1_000_000, "sendfile")
        ksft_gt(driver_stats(new)["tx_packets"], 0)


def _plug_in(cfg):
    """ Give the port its address again. """
    ip_batch([f"addr replace {cfg.addr_v['4']}/24 dev {cfg.ifname}", f"link set {cfg.ifname} up"])
    cfg.reach()


@ksft_disruptive
def namespace_deleted(cfg):
    """ A port comes back when its namespace is deleted, with a VLAN on top of it. """
    with NetNS() as ns:
        ip(f"link set {cfg.ifname} netns {ns.name}")
        ip_batch([f"link set {cfg.ifname} up",
                  f"link add link {cfg.ifname} name ksft-vlan type vlan id 100",
                  "link set ksft-vlan up"], ns=ns.name)
    wait_until(lambda: Path(f"/sys/class/net/{cfg.ifname}").exists(), 60, "the port comes back")
    _plug_in(cfg)


def _rebind(cfg):
    port, driver = cfg.card.ports[0], cfg.driver
    begin = time.monotonic()
    port.unbind()
    ksft_lt(time.monotonic() - begin, 60, "seconds until nothing holds the port any more")
    port.bind(driver)
    wait_until(port.find, 60, "there is an interface")
    ksft_eq(port.ifname, cfg.ifname, "the name of the interface")
    cfg.dev["ifindex"] = cfg.ifindex = port.ifindex()


@ksft_disruptive
def unread_data(cfg):
    """ Data that nobody has read yet stay, although the port goes that received them. """
    if not cfg.card:
        raise KsftSkipEx("needs the modelled card")
    data = random.Random(2).randbytes(UNREAD)
    with socket.create_server((cfg.addr_v["4"], 0)) as server:
        with NetNSEnter(cfg.remote_ns):
            sender = connect(cfg.addr_v["4"], server.getsockname()[1])
        receiver, _ = server.accept()
        with sender, receiver:
            make_room(receiver, 4 * UNREAD)
            sender.sendall(data)
            wait_until(lambda: len(receiver.recv(UNREAD, socket.MSG_PEEK)) == UNREAD, 60,
                       "all of it is there")
            _rebind(cfg)
            _plug_in(cfg)
            found = b""
            while len(found) < UNREAD:
                found += receiver.recv(UNREAD)
            ksft_eq(found == data, True, "data as they were sent")


@ksft_disruptive
def unbound_beneath_others(cfg):
    """ A port is unbound beneath a bridge, a VLAN, macvlan, a socket and a program. """
    if not cfg.card:
        raise KsftSkipEx("needs the modelled card")
    ip(f"link add link {cfg.ifname} name ksft-vlan type vlan id 100")
    ip("link add ksft-bridge type bridge")
    defer(ip, "link del ksft-bridge")
    for words in ("ksft-vlan master ksft-bridge", "ksft-vlan up", "ksft-bridge up"):
        ip(f"link set {words}")
    cmd(f"ip link add link {cfg.ifname} name ksft-mac type macvlan mode bridge", fail=False)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as holder:
        holder.bind((cfg.ifname, 3))
        with contextlib.suppress(CmdExitFailure):
            ethtool(f"-K {cfg.ifname} ntuple on")
        _rebind(cfg)
    for name in ("ksft-vlan", "ksft-mac"):
        ksft_eq(Path(f"/sys/class/net/{name}").exists(), False, f"{name} is there")
    _plug_in(cfg)
    transfer(cfg, 1_000_000, "sendfile")


def main():
    """ Ksft boiler plate main """

    with PeerEnv(__file__, v6=False) as cfg:
        cfg.know_each_other()
        ksft_run(cfg.judged([made_up_headers, many_addresses, all_vlans, two_tags, zero_copy,
                             counters_go_on, renamed, namespace_deleted,
                             unread_data, unbound_beneath_others]), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
