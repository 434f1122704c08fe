#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0

"""
Devices on top of the port, as hosts have them: a bridge that filters VLANs, the
tap of a virtual machine, bonds, macvlan, ipvlan, a flow table, MPLS, traffic
classes in software, netconsole. TCP streams each way arrive as they were sent.

SECONDS in the environment is how long the cases are repeated.
"""

import contextlib
import fcntl
import hashlib
import mmap
import os
import random
import re
import socket
import struct
import tempfile
import time
from pathlib import Path

from net.lib.py import CmdExitFailure, tc, tool
from net.lib.py.ksft import ksft_flush_defer
from lib.py import EthtoolFamily, KsftNamedVariant, KsftSkipEx, NetNS, NetNSEnter
from lib.py import cmd, defer, ip, ksft_eq, ksft_exit, ksft_ge, ksft_gt, ksft_pr, ksft_run
from lib.py import ksft_variants
from lib.py.peer import PeerEnv
from lib.py.support import Task, driver_stats, insert_module, is_emulated, make_room, netdev_stat
from lib.py.support import remove_module, wait_until
from flow_rules import channels, set_channels
from segmentation import ETH_HLEN, NEEDS_CSUM, GSO, TCP_ACK, build_packet, send_to_split
from tcp_stream import connect

SIZE = 200_000 if is_emulated() else 4_000_000
PATIENCE = 120
VLAN, OTHER_VLAN = 100, 101
ETH_P_TEST = 0x88b5
LABEL = 100
# Two classes of priorities, for two queues.
CLASSES = "num_tc 2 map 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 hw 0"
SO_PRIORITY = 12
CONSOLE_PORT, LINES = 6666, 50
MACHINE = "02:00:00:00:00:77"
LENGTH, SEGMENT = 30_000, 1448
# struct virtio_net_hdr, and of <linux/if_tun.h>.
VNET_HLEN = 10
TUNSETIFF, TUNSETOFFLOAD = 0x400454ca, 0x400454d0
TAP_WITH_VNET_HDR = 0x0002 | 0x1000 | 0x4000
TUN_F_CSUM_TSO4 = 0x1 | 0x2


def _data(size):
    return random.Random(size).randbytes(size)


def _receive(server):
    """ Accept a connection, and return the length and the checksum of what it brings. """
    server.settimeout(PATIENCE)
    peer, _ = server.accept()
    size, digest = 0, hashlib.blake2b()
    with peer:
        peer.settimeout(PATIENCE)
        while piece := peer.recv(1 << 16):
            size += len(piece)
            digest.update(piece)
    return [size, digest.hexdigest()]


def _send(address, port, size):
    with connect(address, port) as peer:
        peer.sendall(_data(size))
        peer.shutdown(socket.SHUT_WR)
        # It keeps the connection until all has arrived.
        peer.recv(1)


def _entered(ns):
    return NetNSEnter(ns) if ns else contextlib.nullcontext()


def _stream(source, target, address, size):
    """ Send a stream between namespaces, and return whether it arrives as it was sent. """
    with _entered(target):
        server = socket.create_server((address, 0))
    with server:
        receiver = Task(_receive, server, ns=target)
        sender = Task(_send, address, server.getsockname()[1], size, ns=source)
        try:
            found = receiver.result(PATIENCE)
            sender.result(PATIENCE)
        finally:
            receiver.kill()
            sender.kill()
    return found == [size, hashlib.blake2b(_data(size)).hexdigest()]


def _each_way(hosts, size):
    return [_stream(source, target, address, size)
            for (source, _), (target, address) in (hosts, hosts[::-1])]


def streams(hosts, size=SIZE):
    """ Check a stream each way. @hosts: two namespaces and their addresses. """
    ksft_eq(_each_way(hosts, size), [True, True], "streams that arrive as they were sent")


def _again_and_again(hosts, over):
    found = _each_way(hosts, SIZE // 4)
    while not over[0]:
        found += _each_way(hosts, SIZE // 4)
    return found


@contextlib.contextmanager
def _streams_beside(hosts):
    """ Check streams each way as long as a block runs. """
    over = mmap.mmap(-1, 1)
    # A process rather than a thread, from which no others are to be forked.
    task = Task(_again_and_again, hosts, over)
    try:
        yield
        over[0] = 1
        found = task.result(2 * PATIENCE)
    finally:
        task.kill()
    ksft_eq(all(found), True, "streams that arrive as they were sent")


def _add(name, kind, link=None, ns=None, into=None):
    """
    Add a device of this kind, optionally on another one, and into another
    namespace than that one's; skips the case if the kernel has none.
    """
    where = (f"link {link} " if link else "") + (f"netns {into} " if into else "")
    made = cmd(f"ip link add name {name} {where}type {kind}", fail=False, ns=ns)
    if made.ret and re.search("Unknown device type|not supported", made.stderr):
        raise KsftSkipEx(f"the kernel has no devices of type {kind.split()[0]}")
    ksft_eq(made.ret, 0, made.stderr)
    defer(ip, f"link del {name}", ns=into or ns)


def _up(name, address=None, ns=None):
    if address:
        ip(f"addr add {address}/24 dev {name}", ns=ns)
    ip(f"link set {name} up", ns=ns)


def _namespace():
    """ Return the name of a namespace for this case. """
    ns = NetNS()
    defer(ns.__exit__, None, None, None)
    ip("link set lo up", ns=ns.name)
    return ns.name


def _restore(cfg):
    """ Take the ports out of what they are in, and set them up. """
    for dev, host in ((cfg.ifname, None), (cfg.remote_ifname, cfg.remote)):
        ip(f"link set {dev} nomaster", host=host)
        ip(f"link set {dev} up", host=host)
    cfg.reach()


def _join(cfg, bridge):
    """ Make the port one of a bridge. """
    _add(bridge, "bridge vlan_filtering 1 vlan_default_pvid 0")
    defer(_restore, cfg)
    ip(f"link set {cfg.ifname} master {bridge}")
    for options in (f"dev {cfg.ifname}", f"dev {bridge} self pvid untagged"):
        tool("bridge", f"vlan add vid {VLAN} {options}")


def _passes(cfg, dev, vid):
    """ Whether a frame of a VLAN passes to a device; one of the right VLAN follows. """
    mac = bytes.fromhex(cfg.dev["address"].replace(":", ""))

    def frame(vid, mark):
        return (mac + bytes.fromhex("020000000002") + struct.pack("!HHH", 0x8100, vid, ETH_P_TEST)
                + mark * 50)

    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_TEST)) as sock:
        sock.bind((dev, ETH_P_TEST))
        sock.settimeout(60)
        cfg.inject(frame(vid, b"1"))
        cfg.inject(frame(VLAN, b"2"))
        return sock.recv(200)[-1:] == b"1"


def bridge(cfg):
    """ A bridge passes frames of its VLAN only. """
    _join(cfg, "ksft-bridge")
    _up("ksft-bridge", "10.9.101.1")
    _add("ksft-vlan", f"vlan id {VLAN}", cfg.remote_ifname, cfg.remote_ns)
    _up("ksft-vlan", "10.9.101.2", cfg.remote_ns)
    streams([(None, "10.9.101.1"), (cfg.remote_ns, "10.9.101.2")])
    ksft_eq(_passes(cfg, "ksft-bridge", VLAN), True, "frames of the VLAN")
    ksft_eq(_passes(cfg, "ksft-bridge", OTHER_VLAN), False, "frames of another VLAN")


def _open_tap(name):
    """ Return the machine's side of a tap that takes packets to be split. """
    with contextlib.suppress(CmdExitFailure):
        insert_module("tun")
    if not os.path.exists("/dev/net/tun"):
        raise KsftSkipEx("the kernel has no tap devices")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    defer(os.close, tap)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP_WITH_VNET_HDR))
    fcntl.ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM_TSO4)
    return tap


def _forwards(port):
    path = Path(f"/sys/class/net/{port}/brport/state")
    return path.read_text(encoding="ascii").strip() == "3"


def _machine(cfg):
    """ Bridge the port and a tap, which is returned. """
    _add("ksft-bridge", "bridge")
    defer(_restore, cfg)
    tap = _open_tap("ksft-tap")
    for dev in (cfg.ifname, "ksft-tap"):
        ip(f"link set {dev} master ksft-bridge")
    for dev in ("ksft-bridge", "ksft-tap"):
        _up(dev)
    # The ports of a bridge do not forward at once.
    wait_until(lambda: all(_forwards(dev) for dev in (cfg.ifname, "ksft-tap")), 60,
               "the bridge forwards")
    return tap


def _packet(source, target, length):
    """ Return a packet between two MAC addresses, the offset of its TCP header, and its data. """
    macs = bytes.fromhex((target + source).replace(":", ""))
    packet, transport = build_packet(macs, "tcp4", length, TCP_ACK, 0)
    return packet, transport, packet[transport + 20:]


def _payload(frames, packet, transport):
    """ Join what the frames of a packet carry, in the order of their sequence numbers. """
    pieces = {}
    for frame in frames:
        if frame[transport:transport + 4] == packet[transport:transport + 4]:
            (length,) = struct.unpack("!H", frame[ETH_HLEN + 2:ETH_HLEN + 4])
            at, = struct.unpack("!I", frame[transport + 4:transport + 8])
            pieces[at] = frame[transport + 20:ETH_HLEN + length]
    start, = struct.unpack("!I", packet[transport + 4:transport + 8])
    return b"".join(pieces[at] for at in sorted(pieces, key=lambda at: at - start & 0xffff_ffff))


def from_machine(cfg):
    """ A virtual machine's packet of many segments leaves whole. """
    tap = _machine(cfg)
    packet, transport, data = _packet(MACHINE, cfg.remote_dev["address"], LENGTH)
    vnet = struct.pack("=BBHHHH", NEEDS_CSUM, GSO["tcp4"], transport + 20, SEGMENT, transport, 16)
    with NetNSEnter(cfg.remote_ns):
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        receiver.bind((cfg.remote_ifname, 0))
    frames = []
    with receiver:
        receiver.settimeout(1)

        def arrived():
            with contextlib.suppress(TimeoutError):
                frames.append(receiver.recv(1 << 17))
            return len(_payload(frames, packet, transport)) >= LENGTH

        os.write(tap, vnet + packet)
        wait_until(arrived, 60, "the packet arrives")
    ksft_eq(_payload(frames, packet, transport) == data, True, "data as they were sent")


def to_machine(cfg):
    """ Frames for a virtual machine arrive whole, whether they are merged on their way or not. """
    tap = _machine(cfg)
    packet, transport, data = _packet(cfg.remote_dev["address"], MACHINE, LENGTH)
    frames = []

    def arrived():
        with contextlib.suppress(BlockingIOError):
            while True:
                frames.append(os.read(tap, 1 << 17)[VNET_HLEN:])
        return len(_payload(frames, packet, transport)) >= LENGTH

    with NetNSEnter(cfg.remote_ns):
        send_to_split(cfg.remote_ifname, "tcp4", packet, transport, SEGMENT)
    wait_until(arrived, 60, "the frames arrive")
    ksft_eq(_payload(frames, packet, transport) == data, True, "data as they were sent")


def _bond(cfg, mode):
    """ Bond the port and one more device, at both ends; return the two hosts. """
    ends = ((None, cfg.ifname, "ksft-here"), (cfg.remote_ns, cfg.remote_ifname, "ksft-there"))
    for ns, _, _ in ends:
        _add("ksft-bond", f"bond miimon 20 {mode}", ns=ns)
    defer(_restore, cfg)
    _add("ksft-here", f"veth peer name ksft-there netns {cfg.remote_ns}")
    for number, (ns, *devices) in enumerate(ends):
        for dev in devices:
            ip(f"link set {dev} down", ns=ns)
            ip(f"link set {dev} master ksft-bond", ns=ns)
        _up("ksft-bond", f"10.9.102.{number + 1}", ns)
    return [(None, "10.9.102.1"), (cfg.remote_ns, "10.9.102.2")]


def _bonding(name):
    return Path(f"/sys/class/net/ksft-bond/bonding/{name}").read_text(encoding="ascii").strip()


def _wait_active(dev, ns=None):
    def active():
        said = ip("-d link show ksft-bond", json=True, ns=ns)[0]
        return said["linkinfo"]["info_data"].get("active_slave")

    wait_until(lambda: active() == dev, 60, f"{dev} is active")


def fail_over(cfg):
    """ A bond goes on with its other device, and comes back, while a stream runs. """
    # There is no switch between the two: what one end sends may arrive at the backup of the other.
    hosts = _bond(cfg, "mode active-backup all_slaves_active 1")
    for ns, dev in ((None, cfg.ifname), (cfg.remote_ns, cfg.remote_ifname)):
        ip(f"link set ksft-bond type bond primary {dev}", ns=ns)
        _wait_active(dev, ns)
    received = netdev_stat(cfg.ifname, "rx_bytes")
    with _streams_beside(hosts):
        for state, active in (("down", "ksft-here"), ("up", cfg.ifname)) * 3:
            ip(f"link set {cfg.ifname} {state}")
            _wait_active(active)
            time.sleep(0.2)
    ksft_gt(netdev_stat(cfg.ifname, "rx_bytes"), received, "bytes received by the port")


def aggregation(cfg):
    """ Both ends of a link aggregation find each other. """
    hosts = _bond(cfg, "mode 802.3ad lacp_rate fast")
    peer = ip("link show ksft-bond", json=True, ns=cfg.remote_ns)[0]["address"]
    wait_until(lambda: _bonding("ad_partner_mac") == peer, 60, "the partner is known")
    streams(hosts)


def _promiscuous(cfg):
    return ip(f"-d link show {cfg.ifname}", json=True)[0]["promiscuity"]


# The kind and the mode of its device, and whether the port has to receive all frames for it.
CONTAINERS = [("macvlan", "bridge", 0), ("macvlan", "private", 0), ("macvlan", "passthru", 1),
              ("ipvlan", "l2", 0), ("ipvlan", "l3", 0)]


@ksft_variants([KsftNamedVariant(f"{kind}_{mode}", kind, mode, promiscuity)
                for kind, mode, promiscuity in CONTAINERS])
def container(cfg, kind, mode, promiscuity):
    """ A container has a device of its own on the port. """
    ns = _namespace()
    before = _promiscuous(cfg)
    _add("ksft-inside", f"{kind} mode {mode}", cfg.ifname, into=ns)
    _up("ksft-inside", "10.9.103.1", ns)
    ip(f"addr add 10.9.103.2/24 dev {cfg.remote_ifname}", ns=cfg.remote_ns)
    defer(ip, f"addr del 10.9.103.2/24 dev {cfg.remote_ifname}", ns=cfg.remote_ns)
    inside = ip("link show ksft-inside", json=True, ns=ns)[0]["address"]
    # In mode l3, ipvlan neither asks for addresses nor answers.
    for address, mac, dev, where in (
            ("10.9.103.1", inside, cfg.remote_ifname, cfg.remote_ns),
            ("10.9.103.2", cfg.remote_dev["address"], "ksft-inside", ns)):
        cmd(f"ip neigh replace {address} lladdr {mac} dev {dev}", ns=where, fail=False)
    ksft_eq(_promiscuous(cfg) - before, promiscuity, "reasons to receive all frames")
    streams([(ns, "10.9.103.1"), (cfg.remote_ns, "10.9.103.2")])


# The devices are to be filled in.
RULES = """
table inet ksft {{
    counter by_rules {{ }}
    flowtable fast {{ hook ingress priority 0; devices = {{ {} }}; }}
    chain forward {{
        type filter hook forward priority 0;
        counter name by_rules;
        meta l4proto tcp flow add @fast;
    }}
}}
"""


def _received(cfg):
    return sum(netdev_stat(dev, "rx_packets") for dev in ("ksft-inner", cfg.ifname))


def flow_table(cfg):
    """ A router lets packets of known connections pass by its rules. """
    ns = _namespace()
    _add("ksft-inner", f"veth peer name ksft-outer netns {ns}")
    _up("ksft-inner", "10.9.104.1")
    _up("ksft-outer", "10.9.104.2", ns)
    ip("route add default via 10.9.104.1", ns=ns)
    ip(f"route add 10.9.104.0/24 via {cfg.addr_v['4']}", ns=cfg.remote_ns)
    defer(ip, "route del 10.9.104.0/24", ns=cfg.remote_ns)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    with tempfile.NamedTemporaryFile("w", suffix=".nft") as rules:
        rules.write(RULES.format(f"{cfg.ifname}, ksft-inner"))
        rules.flush()
        made = cmd(f"nft -f {rules.name}", fail=False)
    if made.ret:
        raise KsftSkipEx(f"no flow tables: {made.stderr.strip()}")
    defer(cmd, "nft delete table inet ksft")
    before = _received(cfg)
    streams([(ns, "10.9.104.2"), (cfg.remote_ns, cfg.remote_addr_v["4"])])
    said = cmd("nft list counter inet ksft by_rules").stdout
    by_rules = int(re.search(r"packets (\d+)", said)[1])
    ksft_gt(by_rules, 0, "packets that rules have seen")
    ksft_ge(_received(cfg) - before, 3 * by_rules, "packets that were received")


def _labels(dev, address, ns):
    """ Let a host take packets with the label, or several, for its own address. """
    for setting in ("platform_labels=1000", f"conf.{dev}.input=1", "conf.lo.input=1"):
        made = cmd(f"sysctl -q -w net.mpls.{setting}", ns=ns, fail=False)
        if made.ret:
            raise KsftSkipEx("the kernel has no MPLS")
    ip(f"addr add {address}/32 dev lo", ns=ns)
    defer(ip, f"addr del {address}/32 dev lo", ns=ns)
    ip(f"-f mpls route add {LABEL} dev lo", ns=ns)
    defer(ip, f"-f mpls route del {LABEL}", ns=ns)


def _labelled(cfg, here, there, count=1, size=SIZE):
    """
    Check streams each way with so many labels. @here, @there: devices, with their addresses.
    Return what counters of the driver have grown by, or nothing of those that it has not got.
    """
    for module in ("mpls_router", "mpls_iptunnel", "mpls_gso"):
        with contextlib.suppress(CmdExitFailure):
            insert_module(module)
    ends = ((None, here[0], "10.9.105.1", there[1]),
            (cfg.remote_ns, there[0], "10.9.105.2", here[1]))
    for ns, dev, address, _ in ends:
        _labels(dev, address, ns)
    labels = "/".join([str(LABEL)] * count)
    for (ns, dev, own, gateway), (_, _, address, _) in (ends, ends[::-1]):
        ip(f"route add {address}/32 encap mpls {labels} via {gateway} dev {dev} src {own} "
           f"mtu {1400 - 4 * count}", ns=ns)
        defer(ip, f"route del {address}/32", ns=ns)
    before = driver_stats(cfg.ifname)
    streams([(ns, address) for ns, _, address, _ in ends], size)
    after = driver_stats(cfg.ifname)
    return {name: after[name] - before[name] for name in ("tx_gso_packets", "tx_refused")
            if name in before}


def mpls(cfg):
    """ Packets with a label of MPLS arrive, and the device splits them. """
    found = _labelled(cfg, (cfg.ifname, cfg.addr_v["4"]),
                      (cfg.remote_ifname, cfg.remote_addr_v["4"]))
    if "tx_gso_packets" in found:
        ksft_ge(found["tx_gso_packets"], SIZE // 200_000, "packets split by the device")


def tag_before_labels(cfg):
    """ There may be as many labels as the device takes, and the stack adds a tag. """
    ends = (None, cfg.ifname, "10.9.106.1"), (cfg.remote_ns, cfg.remote_ifname, "10.9.106.2")
    for ns, dev, address in ends:
        _add("ksft-vlan", f"vlan proto 802.1ad id {VLAN}", dev, ns)
        _up("ksft-vlan", address, ns)
    found = _labelled(cfg, *[("ksft-vlan", address) for _, _, address in ends], 28, SIZE // 20)
    ksft_eq(found.get("tx_refused", 0), 0, "packets that were dropped")


def _sent_by_class(cfg):
    """ Return the packets that the qdisc of each class has sent. """
    shown = tc(f"-s qdisc show dev {cfg.ifname}").stdout
    found = re.findall(r"parent \w*:(\d+) .*?\n Sent \d+ bytes (\d+) pkt", shown)
    return {int(number): int(packets) for number, packets in found}


def _check_class(cfg, priority, count=500):
    """ Send packets of a priority, and wait until the qdisc of its class has sent them. """
    def sent():
        return _sent_by_class(cfg)[priority + 1]

    until = sent() + count
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, priority)
        for _ in range(count):
            sock.sendto(b"class", (cfg.remote_addr_v["4"], 9))
    wait_until(lambda: sent() >= until, 20, f"class {priority} has sent {count} packets")


def traffic_classes(cfg):
    """ Packets of a priority are in the queues of their class. """
    if channels(cfg)["combined-max"] < 2:
        raise KsftSkipEx("a single queue")
    defer(set_channels, cfg, channels(cfg)["combined-count"])
    set_channels(cfg, 2)
    made = cmd(f"tc qdisc replace dev {cfg.ifname} root mqprio {CLASSES}", fail=False)
    if made.ret:
        raise KsftSkipEx(f"no mqprio: {made.stderr.strip()}")
    defer(tc, f"qdisc del dev {cfg.ifname} root")
    for priority in (0, 1):
        _check_class(cfg, priority)
    streams([(None, cfg.addr_v["4"]), (cfg.remote_ns, cfg.remote_addr_v["4"])])


def net_console(cfg):
    """ Messages of the kernel arrive at another host, while a stream runs. """
    mac = cfg.remote_dev["address"]
    with NetNSEnter(cfg.remote_ns):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((cfg.remote_addr_v["4"], CONSOLE_PORT))
    with sock:
        sock.settimeout(60)
        # The messages of before come first.
        make_room(sock, 8 << 20)
        where = (f"netconsole=6665@{cfg.addr_v['4']}/{cfg.ifname},"
                 f"{CONSOLE_PORT}@{cfg.remote_addr_v['4']}/{mac}")
        try:
            insert_module("netconsole", where)
        except CmdExitFailure as error:
            raise KsftSkipEx("no netconsole, or the port has no netpoll") from error
        defer(remove_module, "netconsole")
        hosts = [(None, cfg.addr_v["4"]), (cfg.remote_ns, cfg.remote_addr_v["4"])]
        # Without a stream, no packet that follows takes one along.
        for beside in (_streams_beside(hosts), contextlib.nullcontext()):
            with beside:
                for number in range(LINES):
                    Path("/dev/kmsg").write_text(f"<3>ksft: line {number} of {LINES}\n",
                                                 encoding="ascii")
                    time.sleep(0.01)
            text = ""
            with contextlib.suppress(TimeoutError):
                while f"line {LINES - 1} of" not in text:
                    text += sock.recv(2000).decode(errors="replace")
            found = re.findall(r"ksft: line (\d+) of", text)
            ksft_eq(found, [str(number) for number in range(LINES)], "lines")


CASES = [bridge, from_machine, to_machine, fail_over, aggregation, container, flow_table, mpls,
         tag_before_labels, traffic_classes, net_console]


# Each case and its parameters.
ROUND = [(getattr(case, "original_func", case), params)
         for case in CASES for params in (CONTAINERS if case is container else [()])]


def again(cfg):
    """ All of them again, until the time is over. """
    end = time.monotonic() + float(os.environ["SECONDS"])
    rounds = 0
    while time.monotonic() < end:
        for case, params in ROUND:
            try:
                case(cfg, *params)
            except KsftSkipEx:
                pass
            finally:
                ksft_flush_defer()
        rounds += 1
    ksft_pr(f"{rounds} rounds")


def main():
    """ Ksft boiler plate main """

    cases = CASES + ([again] if "SECONDS" in os.environ else [])
    with PeerEnv(__file__) as cfg:
        cfg.ethnl = EthtoolFamily()
        ksft_run(cfg.judged(cases), args=(cfg, ))
    ksft_exit()


if __name__ == "__main__":
    main()
